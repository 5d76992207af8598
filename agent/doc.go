// Package agent is the training side: it takes a job, fetches its bundle, launches the worker, follows what the worker
// writes, sends it on, uploads the predictions and says how it ended. The same code runs inside the server for local
// runs, and on training machines for all others.
//
// The agent is disposable, the job directory is not: whoever comes back to a job directory goes on from what is written
// there. Starting a job and adopting one are the same code.
package agent
