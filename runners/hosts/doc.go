// Package hosts is where the server logs in to another machine: what the account's ssh configuration says about it, the
// connection, scripts that are run there, a unix socket there whose connections arrive here.
//
// Nothing in it ever prompts, and every wait has an end. Two transports do the same: one in this process, and the installed
// ssh program for what that one cannot do.
package hosts
