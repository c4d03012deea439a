// Package admin tests what operators do: check, repair, unblock, access tokens, the audit log.
package admin
