//go:build !linux

package testdb

import (
	"errors"
	"os"
	"os/exec"
)

// On other systems than Linux only SQLite and crash children are tested. Servers, and the kernel's help to end them,
// need Linux.

var errLinuxOnly = errors.New("testdb: database servers are started on Linux only")

func start(cmd *exec.Cmd) error     { return cmd.Start() }
func dropPrivileges(*exec.Cmd)      {}
func giveAway(string) error         { return errLinuxOnly }
func freeze(int) []int              { return nil }
func thaw(int, []int)               {}
func killTree(int) error            { return errLinuxOnly }
func removeSharedMemory(string)     {}
func lockFile(path string) *os.File { f, _ := os.Create(path); return f }
func reserve(int) func()            { return func() {} }
func freeBytes(string) uint64       { return 0 }
func closedFolder(string) string    { return "" }
