package bench

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TestWaiters measures what waiting clients cost `rowfeed serve`, a process of its own: its memory, its CPU while
// nothing happens, and how long an entry takes from the writer's commit to all of them.
func TestWaiters(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "rowfeed")
	build := exec.Command("go", "build", "-o", bin, "./cmd/rowfeed")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n := scaled(10_000)
	out := table{Title: count(float64(n)) + " clients that wait, on one `rowfeed serve`", Head: []string{"database",
		"how", "memory before, MiB", "with them, MiB", "KiB each", "idle, % of a core", "commit to half of them, ms",
		"to 99 %", "to the last", "CPU of an entry to all, ms"}}
	each(t, func(b *bed) {
		db := b.Rowfeed(b.Pool, nil)
		b.fill("items", 1)
		f := b.Feed(db, rowfeed.FeedSpec{Name: "items", Table: "items"})
		_, err := f.Publish(b.Context())
		b.Must(err)
		for _, how := range []string{"stream", "wait=60s"} {
			s := b.serve(bin)
			before := s.memory()
			w := newWaiters(b, s.address, how, n)
			idle := s.idle(*window)
			with := s.memory()
			var half, most, last, cost figure
			for i := range *reps {
				cpu := s.cpu()
				b.SQL(fmt.Sprintf("UPDATE items SET payload = 'v%d'", i))
				arrived := w.round(time.Now())
				half, most, last = append(half, arrived.Median()), append(most, arrived.Quantile(0.99)), append(last,
					arrived.Max())
				cost = append(cost, milliseconds(s.cpu()-cpu))
			}
			w.close()
			s.stop()
			mib := func(bytes int64) string { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }
			out.Row(b.Engine.Name, how, mib(before), mib(with),
				fmt.Sprintf("%.0f", float64(with-before)/1024/float64(n)), fmt.Sprintf("%.1f", 100*idle),
				fmt.Sprintf("%.0f", half.Median()), fmt.Sprintf("%.0f",
					most.Median()), fmt.Sprintf("%.0f", last.Median()), fmt.Sprintf("%.0f", cost.Median()))
		}
	})
	out.Print()
}

// served is a running `rowfeed serve`.
type served struct {
	*bed
	cmd     *exec.Cmd
	address string
}

func (b *bed) serve(bin string) *served {
	b.Helper()
	s := &served{bed: b, cmd: exec.Command(bin, "serve", "--listen", "127.0.0.1:0", "--db", b.URL)}
	s.cmd.Dir = b.TempDir()
	stderr, err := s.cmd.StderrPipe()
	b.Must(err)
	b.Must(s.cmd.Start())
	b.Cleanup(s.stop)
	address := regexp.MustCompile(`address=(\S+)`)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			s.address = m[1]
			go func() {
				for lines.Scan() {
				}
			}()
			return s
		}
	}
	b.Fatal("it does not serve")
	return nil
}

// stop ends the process. Further calls do nothing.
func (s *served) stop() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(os.Interrupt)
		_ = s.cmd.Wait()
	}
}

// memory returns the process's memory in bytes.
func (s *served) memory() int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	s.Must(err)
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(data)
	if m == nil {
		s.Fatal("no VmRSS")
	}
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	s.Must(err)
	return kib << 10
}

// cpu returns the CPU time of the process.
func (s *served) cpu() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	s.Must(err)
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(f, 10, 64)
		s.Must(err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// idle returns the share of a core that the process uses once it is idle.
func (s *served) idle(over time.Duration) float64 {
	time.Sleep(over)
	cpu, began := s.cpu(), time.Now()
	time.Sleep(over)
	return (s.cpu() - cpu).Seconds() / time.Since(began).Seconds()
}

// waiters are clients that wait for entries.
type waiters struct {
	*bed
	conns   []net.Conn
	arrived chan time.Time
}

// newWaiters returns when all clients have got their first line.
func newWaiters(b *bed, address, how string, n int) *waiters {
	b.Helper()
	w := &waiters{bed: b, conns: make([]net.Conn, n), arrived: make(chan time.Time, n)}
	path := "/_feeds/stream/items?after=now"
	if how != "stream" {
		path = "/_feeds/fetch/items?" + how + "&after="
	}
	var ready sync.WaitGroup
	dialing := make(chan struct{}, 64)
	for i := range w.conns {
		ready.Add(1)
		dialing <- struct{}{}
		go func() {
			conn, err := net.Dial("tcp", address)
			<-dialing
			if err != nil {
				b.Error(err)
				ready.Done()
				return
			}
			w.conns[i] = conn
			if how == "stream" {
				w.stream(conn, path, &ready)
			} else {
				w.wait(conn, path, &ready)
			}
		}()
	}
	ready.Wait()
	return w
}

func ask(conn net.Conn, path string) {
	_, _ = conn.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
}

// stream counts every event.
func (w *waiters) stream(conn net.Conn, path string, ready *sync.WaitGroup) {
	ask(conn, path)
	lines := bufio.NewReaderSize(conn, 512)
	begun := false
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if !begun {
				ready.Done()
			}
			return
		}
		if strings.HasPrefix(line, "id: ") && !begun {
			begun = true
			ready.Done()
		}
		if strings.HasPrefix(line, "data: ") {
			w.arrived <- time.Now()
		}
	}
}

var answered = regexp.MustCompile(`"cursor":"([^"]*)"`)

// wait sends the next request with the cursor of the last answer, and counts every entry.
func (w *waiters) wait(conn net.Conn, path string, ready *sync.WaitGroup) {
	lines := bufio.NewReaderSize(conn, 512)
	for cursor := ""; ; {
		ask(conn, path+cursor)
		if cursor != "" && ready != nil {
			ready.Done()
			ready = nil
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				if ready != nil {
					ready.Done()
				}
				return
			}
			m := answered.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			if strings.Contains(line, `"position"`) && cursor != "" {
				w.arrived <- time.Now()
			}
			cursor = m[1]
			break
		}
	}
}

// round collects the arrivals of one entry at all clients, in milliseconds.
func (w *waiters) round(committed time.Time) (arrivals figure) {
	w.Helper()
	late := time.After(time.Minute)
	for range w.conns {
		select {
		case at := <-w.arrived:
			arrivals = append(arrivals, milliseconds(at.Sub(committed)))
		case <-late:
			w.Fatalf("%d of %d have it", len(arrivals), len(w.conns))
		}
	}
	return arrivals
}

func (w *waiters) close() {
	for _, c := range w.conns {
		if c != nil {
			_ = c.Close()
		}
	}
}
