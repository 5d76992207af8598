// Package slurmtest starts a real SLURM cluster on this machine for tests: munged, slurmctld and some slurmd, each a
// virtual node with fake GPUs, all on loopback and in a folder of their own. It needs root and Debian's packages
// slurmctld, slurmd, slurm-client and munge; without them the tests say so, and with CI=true they fail.
package slurmtest
