package testdb

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// starts passes commands to the thread that starts them; see start.
var (
	starts      = make(chan func())
	startThread = sync.OnceFunc(func() {
		go func() {
			runtime.LockOSThread()
			for f := range starts {
				f()
			}
		}()
	})
)

// start starts a command that the kernel kills when this process dies. The kernel does so when the thread that started
// the command ends, so one thread that never ends starts all commands.
func start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	startThread()
	done := make(chan error)
	starts <- func() { done <- cmd.Start() }
	return <-done
}

// unprivileged is the user that servers run as if this process is root's, because servers refuse to run as root.
// Otherwise it is nil.
var unprivileged = sync.OnceValue(func() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "mysql", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if errors.Join(err1, err2) == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	panic("testdb: running as root, and none of the users postgres, mysql, nobody exists")
})

// dropPrivileges makes cmd run as the unprivileged user if this process is root's.
func dropPrivileges(cmd *exec.Cmd) {
	if who := unprivileged(); who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
}

// closedFolder returns the first folder on the way to path that the unprivileged user may not enter, for example /root,
// or "".
func closedFolder(path string) string {
	if unprivileged() == nil {
		return ""
	}
	for dir := path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o001 == 0 {
			return dir
		}
	}
	return ""
}

// giveAway makes the unprivileged user the owner of a folder and its content.
func giveAway(folder string) error {
	who := unprivileged()
	if who == nil {
		return nil
	}
	return filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(who.Uid), int(who.Gid))
	})
}

// freeze stops a process and all its children. The parent is stopped first, so that it starts no more children, and
// ended children keep their process ids.
func freeze(pid int) []int {
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	deadline := time.Now().Add(patience)
	for state(pid) != 'T' && state(pid) != 'Z' && state(pid) != 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	children := childrenOf(pid)
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGSTOP)
	}
	return children
}

// thaw continues the processes.
func thaw(pid int, children []int) {
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGCONT)
	}
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// killTree kills a process and its children at the same moment, as a power cut would, and returns when the children
// have ended. The caller waits for the process itself.
func killTree(pid int) error {
	children := freeze(pid)
	for _, p := range append(children, pid) {
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
	deadline := time.Now().Add(patience)
	for _, child := range children {
		// A zombie holds nothing any more, and init removes it later.
		for s := state(child); s != 0 && s != 'Z'; s = state(child) {
			if time.Now().After(deadline) {
				return fmt.Errorf("testdb: process %d does not go away (state %c)", child, s)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// childrenOf lists the children of a process.
func childrenOf(pid int) []int {
	entries, _ := os.ReadDir("/proc")
	var children []int
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if fields := stat(child); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			children = append(children, child)
		}
	}
	return children
}

// state returns the kernel's letter for the state of a process, or 0 if there is no such process.
func state(pid int) byte {
	if fields := stat(pid); len(fields) > 0 {
		return fields[0][0]
	}
	return 0
}

// stat returns /proc/<pid>/stat from the field after the name, because the name may contain spaces and parentheses:
// state, parent, …
func stat(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// removeSharedMemory removes the System V segment that a killed PostgreSQL leaves. Line 7 of postmaster.pid has its key
// and id. A machine has few segments, so killed test servers would use them up.
func removeSharedMemory(data string) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return
	}
	var key, id int
	if _, err := fmt.Sscan(lines[6], &key, &id); err != nil {
		return
	}
	// The id may belong to another segment by now.
	var segment unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &segment); err != nil || int(segment.Perm.Key) != key ||
		segment.Nattch > 0 {
		return
	}
	_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
}

// lockFile acquires an exclusive lock on a file, which ends with this process. It returns nil if another process has
// the lock.
func lockFile(path string) *os.File {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil
	}
	return f
}

// reserve reserves a port among the test processes of this machine, until release is called or this process ends. It
// returns nil if another process has reserved the port. Several test runs may use the machine at the same time, and
// none may start a server at the port of another's killed server. The reservation is the name of an abstract socket,
// which is unique and leaves nothing in the file system.
func reserve(port int) (release func()) {
	l, err := net.Listen("unix", "@rowfeed-testdb-port-"+strconv.Itoa(port))
	if err != nil {
		return nil
	}
	return func() { _ = l.Close() }
}

// freeBytes returns the free space at path, or 0 if it is unknown.
func freeBytes(path string) uint64 {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}
