// Package hoststest has real OpenSSH servers for tests: on loopback, with ordinary accounts whose login shells and rc files
// are as noisy as those of a cluster.
package hoststest
