// Package operate has the commands by which operators see what is wrong and put it right: check, repair, status,
// unblock, consumer, dead, lease, token and audit. The work is done by package admin; this package prints the answers.
package operate
