// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_OPENMP_WAIT_H_
#define ONESTEP_RUNTIME_CPU_OPENMP_WAIT_H_

namespace onestep {

// Makes the OpenMP team of this process, oneDNN's and ours, spin only briefly
// before it sleeps: left alone, GNU's spins for milliseconds, and where other
// programs share the cores a step becomes 40 times slower. Its runtime reads
// the environment while it is loaded, so the program is started again with
// GOMP_SPINCOUNT set. Returns, having done nothing, when the user has set that
// or OMP_WAIT_POLICY, and when it cannot start again.
// REQUIRES: first thing in main; `argv` is main's.
void LimitOpenmpSpinning(char** argv);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_OPENMP_WAIT_H_
