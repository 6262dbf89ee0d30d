/// Checkpoints: files from which a training goes on bit for bit.
///
///   State all = nn::state_of(net);  // PyTorch's names
///   all.add("optimizer.", optimizer.state());
///   all.add("rng.", nn::state_of(rng));
///   all.set_count("step", step);  // all that a Schedule needs
///   nn::save_checkpoint("model.safetensors", all);
///
///   State all = nn::load_checkpoint("model.safetensors");
///   optimizer.load_state(all.take("optimizer."));
///   nn::load_state(rng, all.take("rng."));
///   nn::load_state(net, all);
///   step = all.count("step");
#pragma once

#include <string>

#include "autograd/random.hpp"
#include "autograd/state.hpp"
#include "nn/module.hpp"

namespace TAPEGRAD::nn {

/// A copy of every parameter under its dotted name, a shared one under each of its names: PyTorch's state dict.
State state_of(const Module& module);

/// Changes the module's parameters to those of the state, in place. Refuses, before anything changes, in one line that
/// lists them all, names that are missing, names that are unexpected, and wrong shapes. Of a shared parameter one name
/// is enough; where there are several, their values must be the same. Texts are not looked at.
///
/// Where not `strict`, what is missing stays as it is, and what is unexpected is ignored; wrong shapes are refused.
void load_state(Module& module, const State& state, bool strict = true);

/// A generator's four words of state, as a text.
State state_of(const Rng& rng);
void load_state(Rng& rng, const State& state);

/// Writes the state to a safetensors file: beside `path`, synced to the disk, then renamed. Whenever the program is
/// killed, or the machine stops, `path` holds all of the old file or all of the new one. What a killed program left
/// beside `path` goes at the next save. Throws std::runtime_error when the file cannot be written, and the old one is
/// then as it was. State that the format cannot hold is refused as by to_safetensors.
void save_checkpoint(const std::string& path, const State& state);

/// Reads a safetensors file, from save_checkpoint or another program. Refuses one that is not there, is not a plain
/// file, or is refused by from_safetensors.
State load_checkpoint(const std::string& path);

/// load_state(module, load_checkpoint(path)) without a copy: what is read goes straight to the parameters, so that a
/// large model is in memory once. Each of a shared parameter's names must be there; the last one counts. Arrays with
/// `skipped` names may be of any type, and are not read. Whatever is refused leaves the module as it was, but for a
/// file that can't be read to its end.
void load_checkpoint(const std::string& path, Module& module, const std::vector<std::string>& skipped = {});

}  // namespace TAPEGRAD::nn
