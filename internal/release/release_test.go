package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

var commitTime = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

var binary string // rowfeed

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "rowfeed-release-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(folder, "rowfeed")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/rowfeed/rowfeed/cmd/rowfeed").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// packed packs a binary for two platforms, in folders made anew, and answers the files. It is
// this test's own, which is smaller.
func packed(t *testing.T) map[string][]byte {
	t.Helper()
	folder := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"built/linux_amd64/rowfeed": data, "built/windows_amd64/rowfeed.exe": data,
		"extra/LICENSE": []byte("licence\n"), "extra/man/rowfeed.1": []byte(".TH\n"), "extra/deploy/Dockerfile": []byte("FROM scratch\n"),
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err = run([]string{"-version", "v1.2.3", "-time", "1769860800", "-built", filepath.Join(folder, "built"), "-extra", filepath.Join(folder, "extra"), "-out", filepath.Join(folder, "dist")})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filesOf(filepath.Join(folder, "dist"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		if all[f.name], err = f.content(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestPack (O10): archives hold what people install, sums are theirs, and packing again gives the
// same bytes.
func TestPack(t *testing.T) {
	dist := packed(t)
	var names []string
	for name := range dist {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"SHA256SUMS", "rowfeed_1.2.3_linux_amd64.cdx.json", "rowfeed_1.2.3_linux_amd64.tar.gz", "rowfeed_1.2.3_windows_amd64.cdx.json", "rowfeed_1.2.3_windows_amd64.zip"}
	if !slices.Equal(names, want) {
		t.Fatalf("it holds %q", names)
	}
	for _, name := range want[1:] {
		sum := sha256.Sum256(dist[name])
		if line := hex.EncodeToString(sum[:]) + "  " + name + "\n"; !strings.Contains(string(dist["SHA256SUMS"]), line) {
			t.Errorf("SHA256SUMS lacks %s", line)
		}
	}
	again := packed(t)
	for name, data := range dist {
		if !bytes.Equal(again[name], data) {
			t.Errorf("%s is not the same a second time", name)
		}
	}

	inside := []string{"LICENSE", "LICENSES-THIRD-PARTY.txt", "deploy/Dockerfile", "man/rowfeed.1", "rowfeed"}
	z, err := gzip.NewReader(bytes.NewReader(dist["rowfeed_1.2.3_linux_amd64.tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, "rowfeed_1.2.3_linux_amd64/")
		if found = append(found, name); !ok || !h.ModTime.Equal(commitTime) || h.Uid != 0 || (h.Mode == 0o755) != (name == "rowfeed") {
			t.Errorf("%s: %+v", h.Name, h)
		}
		if name == "LICENSES-THIRD-PARTY.txt" {
			licences(t, r)
		}
	}
	if !slices.Equal(found, inside) {
		t.Errorf("the tar holds %q", found)
	}
	archive, err := zip.NewReader(bytes.NewReader(dist[want[4]]), int64(len(dist[want[4]])))
	if err != nil {
		t.Fatal(err)
	}
	found = nil
	for _, f := range archive.File {
		found = append(found, strings.TrimPrefix(f.Name, "rowfeed_1.2.3_windows_amd64/"))
		if !f.Modified.Equal(commitTime) {
			t.Errorf("%s is of %v", f.Name, f.Modified)
		}
	}
	inside[4] += ".exe"
	if !slices.Equal(found, inside) {
		t.Errorf("the zip holds %q", found)
	}
}

func licences(t *testing.T, r io.Reader) {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) == 0 {
		t.Fatal("this binary knows no modules")
	}
	for _, m := range info.Deps {
		if !strings.Contains(string(text), "\n==== "+m.Path+" "+m.Version+": ") {
			t.Errorf("the licence of %s is missing", m.Path)
		}
	}
}

// TestSBOM (O10): every module that the linker has put into the binary is listed with its version
// and checksum, and nothing else is.
func TestSBOM(t *testing.T) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	sum := sha256.Sum256([]byte("binary"))
	if err := writeSBOM(&out, info, "v1.2.3", commitTime, sum[:]); err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(&out, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if main := bom.Metadata.Component; main.Name != "github.com/rowfeed/rowfeed" || main.Version != "v1.2.3" || (*main.Hashes)[0].Value != hex.EncodeToString(sum[:]) || bom.Metadata.Timestamp != "2026-01-31T12:00:00Z" {
		t.Errorf("it is of %+v", bom.Metadata)
	}
	listed := map[string]cyclonedx.Component{}
	for _, c := range *bom.Components {
		listed[c.Name] = c
	}
	if len(info.Deps) < 20 {
		t.Fatalf("the binary has %d modules", len(info.Deps))
	}
	for _, m := range info.Deps {
		c, ok := listed[m.Path]
		if !ok || c.Version != m.Version || c.PackageURL != "pkg:golang/"+m.Path+"@"+m.Version || c.Hashes == nil || len((*c.Hashes)[0].Value) != 64 {
			t.Errorf("%s %s is listed as %+v", m.Path, m.Version, c)
		}
		delete(listed, m.Path)
	}
	if std := listed["std"]; "go"+std.Version != info.GoVersion || len(listed) != 1 {
		t.Errorf("besides its modules it lists %+v", listed)
	}
	if refs := (*bom.Dependencies)[0].Dependencies; len(*refs) != len(info.Deps)+1 {
		t.Errorf("%d dependencies are named", len(*refs))
	}
}
