// Package cli has what all commands of rowfeed share: the global flags and what they mean (App), the open database
// (Session), values of flags, output, errors with their exit codes, the log, and the record in the audit log. It knows
// no command. Begin reading at App.
package cli
