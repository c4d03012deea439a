package peers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// recorded is one run of a measure on one server, as the folder results keeps it: every figure of every repetition.
type recorded struct {
	Day      string // of the run
	Server   string // the server's version
	Versions []string
	Go       string
	Machine  string
	Hold     string // -hold
	Entrants []recordedEntrant
}

type recordedEntrant struct {
	Peer, Configuration string
	Alone               bool `json:",omitempty"`
	Counts              counts
	Figures             map[string]figure
}

func (m peerMeasure) file(e testdb.Engine) string {
	return filepath.Join("results", m.name+"-"+e.Name+".json")
}

// save stores a complete comparison. Figures of different runs cannot be compared.
func (p *comparison) save(t *testing.T, server string) {
	t.Helper()
	if testing.Short() {
		t.Fatal("-record: a short run has no figures")
	}
	r := recorded{Day: time.Now().UTC().Format(time.DateOnly), Server: server, Versions: versions(t),
		Go: runtime.Version(), Machine: machine(t), Hold: hold.String()}
	for _, who := range p.entrants {
		if p.outcomes(who) == nil {
			t.Fatalf("-record: %s has not run; nothing is recorded", who.key())
		}
		e := recordedEntrant{Peer: who.name, Configuration: who.configuration.name, Alone: who.alone,
			Counts: *p.outcomes(who), Figures: map[string]figure{}}
		for name, f := range p.figures {
			if what, ok := strings.CutPrefix(name, who.key()+" "); ok {
				e.Figures[what] = f
			}
		}
		r.Entrants = append(r.Entrants, e)
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		err = errors.Join(os.MkdirAll("results", 0o755),
			os.WriteFile(p.measure.file(p.engine), append(text, '\n'), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// load returns what was recorded of a measure on a server. ok is false if nothing was.
func (m peerMeasure) load(t *testing.T, e testdb.Engine) (s *standings, r recorded, ok bool) {
	t.Helper()
	text, err := os.ReadFile(m.file(e))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r, false
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatalf("%s: %v", m.file(e), err)
	}
	s = &standings{measure: m, engine: e, figures: figures[string]{}, counts: map[string]*counts{}}
	for _, e := range r.Entrants {
		who := entrantNamed(t, e)
		s.entrants = append(s.entrants, who)
		s.counts[who.key()] = &e.Counts
		for what, f := range e.Figures {
			s.figures[who.key()+" "+what] = f
		}
	}
	return s, r, true
}

func entrantNamed(t *testing.T, e recordedEntrant) entrant {
	t.Helper()
	for _, c := range append([]*contestant{&withoutPeer}, contestants...) {
		if c.name == e.Peer {
			who := c.with(e.Configuration)
			who.alone = e.Alone
			return who
		}
	}
	t.Fatalf("the results name the peer %q, which does not exist", e.Peer)
	return entrant{}
}

// machine describes the machine that measures.
func machine(t *testing.T) string {
	t.Helper()
	name, memory := runtime.GOARCH, ""
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(text); m != nil {
			name = string(m[1])
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err == nil {
			memory = fmt.Sprintf(", %d GiB", (kib+1<<19)>>20)
		}
	}
	return fmt.Sprintf("%s, %d cores%s, %s", name, runtime.NumCPU(), memory, runtime.GOOS)
}
