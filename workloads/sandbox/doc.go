// Package sandbox starts private, throwaway database servers: a MariaDB or
// MySQL and, where one is found, a Redis or Valkey. They listen on Unix sockets
// in a folder that only their owner may enter. They end with the Sandbox or with
// the process that made it, even by kill -9; the folder goes with the Sandbox or
// at the next Start.
//
// # How nothing is left behind
//
// Every server is a direct child whose parent-death signal is SIGKILL. Linux
// sends that signal when the *thread* that forked the child ends, and Go ends
// threads as it likes, so all children of a sandbox are forked by one goroutine
// that is locked to its thread until they are gone (keeper). They are in process
// groups of their own, so that a Ctrl-C at the terminal reaches only chokepoint,
// which then closes the sandbox.
//
// The folder is held by an flock on the folder itself (see folder). A process
// that is killed loses the lock with its life, and the next Start removes what
// it left.
//
// # How it is fast
//
// Initialising a data folder takes seconds, copying one takes a twentieth of a
// second. So each server version's data folder is made once, in the user's
// cache folder, and copied for each sandbox (see template).
//
// Durability is off: no binary log, no doublewrite, redo flushed once a second,
// and a stop that skips InnoDB's clean-up. None of it changes who waits for
// whom; it does take the disk out of the commit, so a workload that is about
// the disk has to say so in Options.Variables.
package sandbox
