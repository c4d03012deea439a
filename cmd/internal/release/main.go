// Command release packs built binaries for people who install them: an archive for each
// platform with the binary, its manual, completions and licences, a list of what each binary
// is made of, and a checksum of every file. scripts/release.sh builds and calls it.
//
// What it writes depends on its input alone: names are in order, and every time is that of
// the commit.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

// options say what is packed.
type options struct {
	version string
	time    time.Time // of the commit
	built   string    // a folder with a folder for each platform, as linux_amd64, which holds the binary
	extra   string    // a folder with what all archives hold beside it
	out     string
}

func run(args []string) error {
	o, seconds := options{}, int64(0)
	f := flag.NewFlagSet("release", flag.ContinueOnError)
	f.StringVar(&o.version, "version", "", "the release's `version`, as v1.2.3")
	f.Int64Var(&seconds, "time", 0, "`seconds` since 1970 of the commit")
	f.StringVar(&o.built, "built", "", "`folder` of the binaries")
	f.StringVar(&o.extra, "extra", "", "`folder` of what every archive holds")
	f.StringVar(&o.out, "out", "", "`folder` to write to")
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.version == "" || seconds == 0 || o.built == "" || o.extra == "" || o.out == "" {
		return fmt.Errorf("give -version, -time, -built, -extra and -out")
	}
	o.time = time.Unix(seconds, 0).UTC()
	return o.pack()
}

func (o options) pack() error {
	platforms, err := os.ReadDir(o.built)
	if err != nil {
		return err
	}
	extra, err := filesOf(o.extra)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for _, platform := range platforms {
		binaries, err := filesOf(filepath.Join(o.built, platform.Name()))
		if err != nil {
			return err
		}
		if len(binaries) != 1 {
			return fmt.Errorf("%s holds %d files instead of one binary", platform.Name(), len(binaries))
		}
		if err := o.packOne(platform.Name(), binaries[0], extra); err != nil {
			return fmt.Errorf("%s: %w", platform.Name(), err)
		}
	}
	return writeSums(o.out)
}

func (o options) packOne(platform string, binary file, extra []file) error {
	info, err := buildinfo.ReadFile(binary.path)
	if err != nil {
		return err
	}
	licences, err := licencesOf(info)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("rowfeed_%s_%s", strings.TrimPrefix(o.version, "v"), platform)
	binary.executable = true
	files := append([]file{binary, {name: "LICENSES-THIRD-PARTY.txt", data: licences}}, extra...)
	for i := range files {
		files[i].name = name + "/" + files[i].name
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	write, ending := writeTar, ".tar.gz"
	if strings.HasPrefix(platform, "windows_") {
		write, ending = writeZip, ".zip"
	}
	if err := create(filepath.Join(o.out, name+ending), func(f *os.File) error { return write(f, files, o.time) }); err != nil {
		return err
	}
	sum, err := sha256Of(binary.path)
	if err != nil {
		return err
	}
	return create(filepath.Join(o.out, name+".cdx.json"), func(f *os.File) error { return writeSBOM(f, info, o.version, o.time, sum) })
}

// writeSums writes the checksums of a folder's files, as sha256sum -c takes them.
func writeSums(folder string) error {
	const sums = "SHA256SUMS"
	files, err := filesOf(folder)
	if err != nil {
		return err
	}
	return create(filepath.Join(folder, sums), func(out *os.File) error {
		for _, f := range files {
			if f.name == sums {
				continue
			}
			sum, err := sha256Of(f.path)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(out, "%x  %s\n", sum, f.name); err != nil {
				return err
			}
		}
		return nil
	})
}

func sha256Of(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	sum := sha256.Sum256(data)
	return sum[:], err
}

// create writes a file, which must be whole when it is there.
func create(path string, write func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
