# A header as Doxygen takes it: a group NAME_hpp with the docstring that opens the file, or, of ops.hpp, a group
# ops_WORD for each headline `// ---- word ...: what ---`. Docstrings' indented lines become code, and what is deleted is left out.
FNR == 1 {
  name = FILENAME
  sub(/.*\//, "", name)
  group = name
  sub(/\.hpp$/, "_hpp", group)
  print "/// @defgroup " group " " name
  print "///"
}
/^\/\/ ---- / && group == "ops_hpp" {
  title = $0
  sub(/^\/\/ -+ /, "", title)
  sub(/ *-*$/, "", title)
  word = title
  sub(/[^a-z].*/, "", word)
  if (open) print "/// @}\n"
  open = note = 1
  print "/// @defgroup ops_" word " " toupper(substr(title, 1, 1)) substr(title, 2)
  next
}
note && /^\/\/ / { if (note++ == 1) print "///"; sub(/^\/\/ /, "/// "); print; next }
note { print "/// @{\n"; note = 0 }
/^}  \/\/ namespace (TAPEGRAD|tapegrad)/ && open { print "/// @}\n"; open = 0 }
/^template <class T>$/ { template = $0; next }
/ = delete;/ || /virtual ~.* = default;$/ { template = ""; print ""; next }
template { print template; template = "" }
/^ *\/\/\/   / { sub(/\/\/\/   /, "///     ") }
{ print }
/^namespace (TAPEGRAD|tapegrad)/ && group != "ops_hpp" { print "/// @addtogroup " group "\n/// @{\n"; open = 1 }
