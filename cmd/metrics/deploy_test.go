package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// The files that operators load.
const (
	dashboardFile = "../../deploy/grafana/rowfeed.json"
	rulesFile     = "../../deploy/prometheus/rowfeed.rules.yaml"
	rulesTest     = "../../deploy/prometheus/rowfeed.test.yaml"
	document      = "../../docs/OPERATIONS.md"
)

type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Name string }
	}
}

type rules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Annotations map[string]string
		}
	}
}

func load(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(path) == ".json" {
		err = json.Unmarshal(data, into)
	} else {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// exposed returns the names of all metrics, each with its labels.
func exposed(t *testing.T) map[string][]string {
	t.Helper()
	families, err := everything(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, f := range families {
		labels := []string{"instance", "job"}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		all[f.GetName()] = labels
		if f.GetMetric()[0].Histogram != nil {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				all[f.GetName()+suffix] = append(slices.Clone(labels), "le")
			}
		}
	}
	return all
}

var (
	selector = regexp.MustCompile(`\b(rowfeed_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	legend   = regexp.MustCompile(`\{\{\s*\$?(?:labels\.)?(\w+)\s*\}\}`)
)

// checkExpression checks the names and labels of a query, and the labels that are shown.
func checkExpression(t *testing.T, where, expr, shown string, all map[string][]string) {
	t.Helper()
	var labels []string
	found := selector.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s asks for no metric of rowfeed: %s", where, expr)
	}
	for _, m := range found {
		known, ok := all[m[1]]
		if !ok {
			t.Errorf("%s uses the metric %s, which does not exist", where, m[1])
		}
		labels = append(labels, known...)
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(known, l[1]) {
				t.Errorf("%s: %s has no label %s", where, m[1], l[1])
			}
		}
	}
	if by := grouping.FindAllStringSubmatch(expr, -1); by != nil {
		kept := []string{}
		for _, b := range by {
			for _, l := range strings.Split(b[1], ",") {
				if l = strings.TrimSpace(l); !slices.Contains(labels, l) {
					t.Errorf("%s groups by the label %s, which does not exist", where, l)
				}
				kept = append(kept, l)
			}
		}
		labels = kept
	}
	for _, l := range legend.FindAllStringSubmatch(shown, -1) {
		if l[1] != "value" && !slices.Contains(labels, l[1]) {
			t.Errorf("%s shows %s, which its answer does not have", where, l[1])
		}
	}
}

// TestDashboardUsesExistingMetrics: every metric and label in a panel exists.
func TestDashboardUsesExistingMetrics(t *testing.T) {
	var d dashboard
	load(t, dashboardFile, &d)
	all := exposed(t)
	if len(d.Panels) < 10 {
		t.Errorf("%d panels", len(d.Panels))
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			checkExpression(t, p.Title, target.Expr, target.LegendFormat, all)
		}
	}
}

// TestAlertsUseExistingMetrics (O4): every metric and label in an alert exists. Each alert says what to do, and there
// is data on which it fires.
func TestAlertsUseExistingMetrics(t *testing.T) {
	var r rules
	load(t, rulesFile, &r)
	tests, err := os.ReadFile(rulesTest)
	if err != nil {
		t.Fatal(err)
	}
	all := exposed(t)
	n := 0
	for _, g := range r.Groups {
		for _, a := range g.Rules {
			n++
			checkExpression(t, a.Alert, a.Expr, a.Annotations["summary"]+a.Annotations["action"], all)
			if a.Annotations["summary"] == "" || a.Annotations["action"] == "" {
				t.Errorf("%s does not say what is wrong, and what to do", a.Alert)
			}
			if !strings.Contains(string(tests), "alertname: "+a.Alert+"\n") {
				t.Errorf("%s does not try %s", rulesTest, a.Alert)
			}
		}
	}
	if n < 5 {
		t.Errorf("%d alerts", n)
	}
}

// TestMetricsDescribeThemselves: every metric has a sentence that says what it is. The document names only existing
// metrics.
func TestMetricsDescribeThemselves(t *testing.T) {
	families, err := everything(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.HasSuffix(f.GetHelp(), ".") {
			t.Errorf("the help of %s is %q", f.GetName(), f.GetHelp())
		}
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	all, named := exposed(t), regexp.MustCompile(`\browfeed_(?:up|\w+_(?:total|seconds|bytes))\b`)
	for _, name := range named.FindAllString(string(text), -1) {
		if all[name] == nil {
			t.Errorf("%s names %s, which does not exist", document, name)
		}
	}
}

// TestEachAlertFiresOnItsDataOnly: the queries are valid PromQL, and every alert fires on exactly the data on which it
// should.
func TestEachAlertFiresOnItsDataOnly(t *testing.T) {
	tool := promtool(t)
	if tool == "" {
		return
	}
	var d dashboard
	load(t, dashboardFile, &d)
	panels := "groups:\n  - name: panels\n    rules:\n"
	for i, p := range d.Panels {
		for n, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$feed", ".*").Replace(target.Expr)
			panels += fmt.Sprintf("      - record: panel_%d_%d\n        expr: %q\n", i, n, expr)
		}
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(file, []byte(panels), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", file},
		{"check", "rules", rulesFile},
		{"test", "rules", rulesTest},
	} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// promtool returns the program that scripts/setup.sh unpacks. Without it CI fails; elsewhere the log says that it is
// missing.
func promtool(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("promtool"); err == nil {
		return path
	}
	for _, folder := range []string{os.Getenv("ROWFEED_ENGINES_DIR"), "../../.engines"} {
		path, err := filepath.Abs(filepath.Join(folder, "promtool", "promtool"))
		if err == nil && folder != "" {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("there is no promtool: run scripts/setup.sh")
	}
	t.Log("NOT TESTED: alerts and panels, because promtool is missing (scripts/setup.sh unpacks it)")
	return ""
}
