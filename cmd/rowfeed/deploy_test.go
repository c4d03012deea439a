package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
)

const deploy = "../../deploy"

// TestSystemdAcceptsUnit (O11): systemd finds no error in the unit and rates its protection as good.
func TestSystemdAcceptsUnit(t *testing.T) {
	unit, err := os.ReadFile(filepath.Join(deploy, "rowfeed.service"))
	if err != nil {
		t.Fatal(err)
	}
	// On this machine the binary is not installed: /bin/true replaces it.
	if strings.Count(string(unit), "/usr/bin/rowfeed") != 1 {
		t.Error("the unit does not name the binary exactly once")
	}
	here := filepath.Join(t.TempDir(), "rowfeed.service")
	if err := os.WriteFile(here, []byte(strings.Replace(string(unit), "/usr/bin/rowfeed", "/bin/true", 1)),
		0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"verify", "--man=no", here},
		{"security", "--offline=true", "--threshold=15", here},
	} {
		if out, err := exec.Command("systemd-analyze", args...).CombinedOutput(); err != nil ||
			args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}

// TestPackagedConfigurationIsValid: rowfeed.yaml of the package is valid, also with each proposed line that it has as a
// comment.
func TestPackagedConfigurationIsValid(t *testing.T) {
	path := filepath.Join(deploy, "rowfeed.yaml")
	if _, err := config.Load(path); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	proposed := regexp.MustCompile(`(?m)^# ((?:  )*(?:- )?[a-z_]+: |relays:$|  )`).ReplaceAllString(string(text), "$1")
	proposed = strings.Replace(proposed, "listen: 127.0.0.1:8080\n", "", 1)
	if strings.Count(proposed, "\nrelays:") != 1 || strings.Count(proposed, "\nlisten:") != 1 {
		t.Fatalf("the proposals were not found:\n%s", proposed)
	}
	if _, err := config.Parse(path, []byte(proposed)); err != nil {
		t.Errorf("%v in\n%s", err, proposed)
	}
}

// TestImageHasOnlyBinaryAndCertificates (O11): the image runs as a user without rights. The test reads the Dockerfile
// only: no container engine builds it.
func TestImageHasOnlyBinaryAndCertificates(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(deploy, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(data), "")
	stages := strings.Split(text, "FROM ")[1:]
	if len(stages) != 2 || !strings.HasPrefix(stages[0], "golang:") || !strings.HasPrefix(stages[1], "scratch\n") {
		t.Fatalf("the stages are %q", stages)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
	for _, part := range []string{
		"golang:" + version + " AS build", "CGO_ENABLED=0 go build -trimpath", "-X main.stamp=$VERSION",
	} {
		if !strings.Contains(stages[0], part) {
			t.Errorf("the build lacks %q", part)
		}
	}
	for _, line := range []string{
		`USER 65532:65532`, `ENTRYPOINT ["/usr/bin/rowfeed"]`,
		`COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt`, `STOPSIGNAL SIGTERM`,
	} {
		if !slices.Contains(strings.Split(stages[1], "\n"), line) {
			t.Errorf("the image lacks %q", line)
		}
	}
	if !regexp.MustCompile(`(?m)^HEALTHCHECK .* CMD \["/usr/bin/rowfeed", "ready"\]$`).MatchString(stages[1]) ||
		strings.Contains(stages[1], "\nRUN ") {
		t.Errorf("the image is\n%s", stages[1])
	}
}

// TestChangelogHasDocumentedForm: CHANGELOG.md has the form that CONTRIBUTING.md describes, the newest version first.
func TestChangelogHasDocumentedForm(t *testing.T) {
	data, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`^## \[(Unreleased|\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?\] - \d{4}-\d{2}-\d{2})\]?$`)
	var dates []string
	sections := 0
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.HasPrefix(line, "### "):
			if !slices.Contains([]string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"},
				strings.TrimPrefix(line, "### ")) {
				t.Errorf("CHANGELOG.md:%d: %q is no kind of change", i+1, line)
			}
		case strings.HasPrefix(line, "## "):
			if sections++; !version.MatchString(line) || strings.Contains(line, "Unreleased") && sections > 1 {
				t.Errorf("CHANGELOG.md:%d: %q is no version", i+1, line)
			}
			if _, date, released := strings.Cut(line, "] - "); released {
				dates = append(dates, date)
			}
		}
	}
	slices.Reverse(dates)
	if sections == 0 || !slices.IsSorted(dates) {
		t.Errorf("versions of %q, the oldest first", dates)
	}
}
