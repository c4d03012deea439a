package testdb

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

const folderPrefix = "rowfeed-testdb-"

// A process has all its servers below one temporary folder per place. The folder contains a lock. A killed process
// cannot remove its folders, so the next process removes folders whose lock is free.
var (
	diskFolder = sync.OnceValues(func() (*folder, error) { return makeFolder(diskPlace()) })
	fastFolder = sync.OnceValues(func() (*folder, error) {
		if place := memoryPlace(); place != "" {
			return makeFolder(place)
		}
		return diskFolder()
	})
)

// memoryDisk is a folder in memory. PostgreSQL makes a database there in 10 ms, and in 200 ms on a slow disk.
const memoryDisk = "/dev/shm"

// memoryPlace returns the folder in memory if it has room for many servers and TMPDIR is not set, else "".
func memoryPlace() string {
	const enough = 4 << 30
	if os.Getenv("TMPDIR") == "" && freeBytes(memoryDisk) >= enough {
		return memoryDisk
	}
	return ""
}

// diskPlace returns the folder for temporary files, unless servers may not use it.
func diskPlace() string {
	if place := os.TempDir(); closedFolder(place) == "" {
		return place
	}
	return "/tmp"
}

type folder struct {
	path string
	lock *os.File // open, and so locked, while the process lives
}

func makeFolder(place string) (*folder, error) {
	sweepFolders(place)
	path, err := os.MkdirTemp(place, folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("testdb: %w", err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		return nil, fmt.Errorf("testdb: %w", err)
	}
	// The lock is acquired before the file gets its name, so that no other process finds it unlocked.
	unnamed := filepath.Join(path, "lock.new")
	lock := lockFile(unnamed)
	if lock == nil {
		return nil, fmt.Errorf("testdb: %s cannot be locked", unnamed)
	}
	if err := os.Rename(unnamed, filepath.Join(path, "lock")); err != nil {
		return nil, fmt.Errorf("testdb: %w", err)
	}
	foldersMu.Lock()
	folders = append(folders, path)
	foldersMu.Unlock()
	return &folder{path, lock}, nil
}

var (
	foldersMu sync.Mutex
	folders   []string // of this process
)

// newFolder makes a folder for one server, on the disk if the server is durable.
func newFolder(engine string, durable bool) (string, error) {
	parent, err := fastFolder()
	if durable {
		parent, err = diskFolder()
	}
	if err != nil {
		return "", err
	}
	path, err := os.MkdirTemp(parent.path, engine+"-")
	if err != nil {
		return "", fmt.Errorf("testdb: %w", err)
	}
	return path, nil
}

// removeFolders removes the folders of this process.
func removeFolders() {
	foldersMu.Lock()
	defer foldersMu.Unlock()
	for _, path := range folders {
		_ = os.RemoveAll(path)
	}
}

// sweepFolders removes the folders of processes that have ended.
func sweepFolders(place string) {
	paths, _ := filepath.Glob(filepath.Join(place, folderPrefix+"*"))
	for _, path := range paths {
		name := filepath.Join(path, "lock")
		if !exists(name) {
			continue
		}
		lock := lockFile(name)
		if lock == nil {
			continue
		}
		data, _ := filepath.Glob(filepath.Join(path, "*", "data"))
		for _, d := range data {
			removeSharedMemory(d)
		}
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}
}
