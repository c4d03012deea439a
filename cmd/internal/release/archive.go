package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// file is one of an archive: from a path, or with data of its own.
type file struct {
	name       string // in the archive, with slashes
	path       string
	data       []byte
	executable bool
}

func (f file) content() ([]byte, error) {
	if f.path == "" {
		return f.data, nil
	}
	return os.ReadFile(f.path)
}

func (f file) mode() fs.FileMode {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// filesOf are a folder's files, those of folders in it included, in order.
func filesOf(folder string) (all []file, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		all = append(all, file{name: filepath.ToSlash(name), path: path})
		return err
	})
	return all, err
}

// writeTar writes a .tar.gz. Owner, rights and times are not those of the files, which differ
// from one machine to the next.
func writeTar(out io.Writer, files []file, at time.Time) error {
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		data, err := f.content()
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(data)), Mode: int64(f.mode()), ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	return cmp.Or(t.Close(), z.Close())
}

func writeZip(out io.Writer, files []file, at time.Time) error {
	z := zip.NewWriter(out)
	for _, f := range files {
		data, err := f.content()
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode())
		w, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return z.Close()
}
