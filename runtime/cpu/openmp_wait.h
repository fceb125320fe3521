// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_OPENMP_WAIT_H_
#define ONESTEP_RUNTIME_CPU_OPENMP_WAIT_H_

namespace onestep {

// Makes the OpenMP threads of this process spin only briefly before they sleep.
// By default GNU's runtime spins for milliseconds, which makes a step up to 40
// times slower when other programs share the cores. The runtime reads its
// environment when it is loaded; therefore this function sets GOMP_SPINCOUNT
// and executes the program again. It does nothing when the user has set
// GOMP_SPINCOUNT or OMP_WAIT_POLICY, or when the program cannot be executed
// again. REQUIRES: main calls this first, with its own `argv`.
void LimitOpenmpSpinning(char** argv);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_OPENMP_WAIT_H_
