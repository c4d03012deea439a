package feedlog

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rightLog: rows 1 and 2 exist, 3 is deleted, 4 moved to 5, 6 was inserted and deleted between two passes. Writers 1
// and 2 append, and 20's commit was known before 11 began.
var (
	right = strings.Join([]string{
		`{"position":"1","op":"upsert","key":{"id":1},"row":{"id":1,"v":"a","w":null,"n":null,"prev":null}}`,
		`{"position":"2","op":"upsert","key":{"id":3},"row":{"id":3,"v":"c","w":null,"n":null,"prev":null}}`,
		`{"position":"3","op":"upsert","key":{"id":4},"row":{"id":4,"v":"d","w":null,"n":null,"prev":null}}`,
		`{"position":"5","op":"upsert","key":{"id":2},"row":{"id":2,"v":"b","w":null,"n":null,"prev":null}}`,
		`{"position":"6","op":"upsert","key":{"id":10},"row":{"id":10,"v":null,"w":1,"n":1,"prev":null}}`,
		`{"position":"7","op":"delete","key":{"id":3}}`,
		`{"position":"8","op":"upsert","key":{"id":20},"row":{"id":20,"v":null,"w":2,"n":1,"prev":10}}`,
		`{"position":"9","op":"delete","key":{"id":4}}`,
		`{"position":"10","op":"upsert","key":{"id":5},"row":{"id":5,"v":"d","w":null,"n":null,"prev":null}}`,
		`{"position":"12","op":"delete","key":{"id":6}}`,
		`{"position":"13","op":"upsert","key":{"id":1},"row":{"id":1,"v":"A","w":null,"n":null,"prev":null}}`,
		`{"position":"14","op":"upsert","key":{"id":11},"row":{"id":11,"v":null,"w":1,"n":3,"prev":20}}`,
	}, "\n")
	final = strings.Join([]string{
		`{"id":1,"v":"A","w":null,"n":null,"prev":null}`,
		`{"v":"b", "id":2, "n":null,"w":null,"prev":null}`, // members in another order
		`{"id":5,"v":"d","w":null,"n":null,"prev":null}`,
		`{"id":10,"v":null,"w":1,"n":1,"prev":null}`,
		`{"id":11,"v":null,"w":1,"n":3,"prev":20}`,
		`{"id":20,"v":null,"w":2,"n":1,"prev":10}`,
	}, "\n")
	rules = Rules{Key: []string{"id"}, Writer: "w", Number: "n", After: "prev"}
)

func read(t *testing.T, log string) []Entry {
	t.Helper()
	entries, err := ReadLines[Entry](strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func table(t *testing.T) []json.RawMessage {
	t.Helper()
	rows, err := ReadLines[json.RawMessage](strings.NewReader(final))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestRightLogHasNoFault(t *testing.T) {
	v := Check(read(t, right), table(t), rules)
	if len(v.Faults) > 0 || v.Entries != 12 || v.Keys != 6 || v.Ordered != 3 {
		t.Errorf("%+v", v)
	}
}

// TestEveryFaultIsFound changes a right log in many ways. Each change gets its fault, and only that one if possible.
func TestEveryFaultIsFound(t *testing.T) {
	// at returns the index of the entry at a position.
	at := func(es []Entry, position string) int {
		return slices.IndexFunc(es, func(e Entry) bool { return e.Position == position })
	}
	without := func(position string) func([]Entry) []Entry {
		return func(es []Entry) []Entry { i := at(es, position); return slices.Delete(es, i, i+1) }
	}
	// swapPlaces swaps the entries at two positions, without their positions.
	swapPlaces := func(p, q string) func([]Entry) []Entry {
		return func(es []Entry) []Entry {
			i, j := at(es, p), at(es, q)
			es[i], es[j] = es[j], es[i]
			es[i].Position, es[j].Position = es[j].Position, es[i].Position
			return es
		}
	}
	for name, c := range map[string]struct {
		spoil func([]Entry) []Entry
		want  []string
	}{
		"lost: a key's only entry":    {without("5"), []string{`lost: key {"id":2} was never`}},
		"lost: a key's last entry":    {without("13"), []string{`stale: key {"id":1}`}},
		"lost: a delete":              {without("7"), []string{`ghost: key {"id":3}`}},
		"lost: the old key of a move": {without("9"), []string{`ghost: key {"id":4}`}},
		"lost: the new key of a move": {without("10"), []string{`lost: key {"id":5} was never`}},
		"lost: an insert-only row":    {without("6"), []string{`causality: position 8`, `lost: key {"id":10}`}},
		"repeated: the same entry": {func(es []Entry) []Entry {
			return slices.Insert(es, 4, es[3])
		}, []string{"repeated: position 5"}},
		"repeated: an insert-only one": {
			func(es []Entry) []Entry { e := es[4]; e.Position = "15"; return append(es, e) },
			[]string{"causality: position 15: number 1 of writer 1 came after 3"},
		},
		"repeated: one position": {func(es []Entry) []Entry { es[3].Position = "3"; return es },
			[]string{"repeated: position 3"}},
		"swapped: neighbours": {func(es []Entry) []Entry { es[2], es[3] = es[3], es[2]; return es },
			[]string{"order: position 3"}},
		"swapped: two of one key":    {swapPlaces("1", "13"), []string{`stale: key {"id":1}`}},
		"swapped: delete and upsert": {swapPlaces("2", "7"), []string{`ghost: key {"id":3}`}},
		"swapped: rows of one writer": {swapPlaces("6", "14"), []string{"causality: position 6: key",
			"causality: position 8: key", "causality: position 14: number 1 of writer 1"}},
		"swapped: rows of two writers": {swapPlaces("6", "8"), []string{`causality: position 6: key {"id":20}`}},
		"wrong content": {func(es []Entry) []Entry {
			es[3].Row = json.RawMessage(strings.Replace(string(es[3].Row), `"b"`, `"B"`, 1))
			return es
		}, []string{`stale: key {"id":2}`}},
		"wrong type": {func(es []Entry) []Entry {
			es[3].Row = json.RawMessage(strings.Replace(string(es[3].Row), `"b"`, `null`, 1))
			return es
		}, []string{`stale: key {"id":2}`}},
		"a column too few": {func(es []Entry) []Entry { es[3].Row = json.RawMessage(`{"id":2,"v":"b"}`); return es },
			[]string{`stale: key {"id":2}`}},
		"a ghost": {func(es []Entry) []Entry {
			return append(es, Entry{"15", "upsert", json.RawMessage(`{"id":9}`), json.RawMessage(`{"id":9}`)})
		}, []string{`ghost: key {"id":9}`}},
		"a live key deleted": {func(es []Entry) []Entry {
			return append(es, Entry{"15", "delete", json.RawMessage(`{"id":2}`), nil})
		}, []string{`lost: key {"id":2} was last received as delete`}},
		"another key's row": {func(es []Entry) []Entry { es[3].Key = json.RawMessage(`{"id":7}`); return es },
			[]string{"malformed: position 5", `lost: key {"id":2}`, `ghost: key {"id":7}`}},
		"no operation": {func(es []Entry) []Entry { es[9].Op = "truncate"; return es },
			[]string{"malformed: position 12"}},
		"no position": {func(es []Entry) []Entry { es[9].Position = "twelve"; return es },
			[]string{`malformed: position "twelve"`}},
		"an upsert has no row": {func(es []Entry) []Entry { es[3].Row = nil; return es },
			[]string{"malformed: position 5", `lost: key {"id":2}`}},
		"nothing received": {func([]Entry) []Entry { return nil }, slices.Repeat([]string{"lost: "}, 6)},
	} {
		t.Run(name, func(t *testing.T) {
			v := Check(c.spoil(read(t, right)), table(t), rules)
			if len(v.Faults) != len(c.want) {
				t.Fatalf("faults:\n%s\nwant %q", strings.Join(v.Faults, "\n"), c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(v.Faults[i], want) {
					t.Errorf("fault %q, want %q", v.Faults[i], want)
				}
			}
		})
	}
}

// TestLogsOfShardsAreChecked has the logs of a shard whose positions are ULIDs: the rows of an account in the order of
// their numbers, after the rows that had been committed before.
func TestLogsOfShardsAreChecked(t *testing.T) {
	const (
		a1 = `{"position":"01GNSG5PM8ZZZVZZZZZZZZZZZZ","op":"upsert","key":{"id":1},"row":{"id":1,"account":1,"n":1,` +
			`"prev":null}}`
		b1 = `{"position":"01GNSG5PM8ZZZW000000000000","op":"upsert","key":{"id":2},"row":{"id":2,"account":2,"n":1,` +
			`"prev":1}}`
		a2 = `{"position":"01GNSG5PM8ZZZW000000000033","op":"upsert","key":{"id":3},"row":{"id":3,"account":1,"n":2,` +
			`"prev":null}}`
		b2 = `{"position":"01GNSG5PM9000000000000000A","op":"upsert","key":{"id":4},"row":{"id":4,"account":2,"n":2,` +
			`"prev":3}}`
	)
	rows, err := ReadLines[json.RawMessage](
		strings.NewReader(
			`{"id":1,"account":1,"n":1,"prev":null} {"id":2,"account":2,"n":1,"prev":1} {"id":3,"account":1,"n":2,` +
				`"prev":null} {"id":4,"account":2,"n":2,"prev":3}`,
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	rules := Rules{Key: []string{"id"}, Writer: "account", Number: "n", After: "prev"}
	at := func(position, entry string) string { // an entry at another position
		return `{"position":"` + position + entry[strings.Index(entry, `","op"`):]
	}
	first, last := "01GNSG5PM8ZZZVZZZZZZZZZZZZ", "01GNSG5PM9000000000000000A"
	for name, c := range map[string]struct{ log, want []string }{
		"right": {[]string{a1, b1, a2, b2}, nil},
		"lost: the first": {[]string{b1, a2, b2},
			[]string{`causality: position 01GNSG5PM8ZZZW000000000000`, `lost: key {"id":1}`}},
		"lost: one in the middle": {[]string{a1, a2, b2}, []string{`lost: key {"id":2}`}},
		"lost: the last":          {[]string{a1, b1, a2}, []string{`lost: key {"id":4}`}},
		"repeated": {[]string{a1, b1, b1, a2, b2}, []string{`repeated: position 01GNSG5PM8ZZZW000000000000`,
			`causality: position 01GNSG5PM8ZZZW000000000000: number 1 of writer 2 came after 1`}},
		"repeated from the beginning": {[]string{a1, b1, a1, b1, a2, b2},
			[]string{`order: position ` + first, `causality: position ` + first, `repeated`, `causality`}},
		"repeated, at another position": {[]string{a1, b1, a2, b2, at("01GNSG5PMA000000000000000A", a1)},
			[]string{`causality: position 01GNSG5PMA000000000000000A: number 1 of writer 1 came after 2`}},
		"swapped": {[]string{a1, a2, b1, b2},
			[]string{`order: position 01GNSG5PM8ZZZW000000000000`}},
		"swapped, and in order": {[]string{at(first, a2), b1, at("01GNSG5PM8ZZZW000000000033", a1), b2}, []string{
			`causality: position 01GNSG5PM8ZZZW000000000000: key {"id":2} came before key {"id":1}`,
			`causality: position 01GNSG5PM8ZZZW000000000033: number 1 of writer 1 came after 2`,
		}},
		"one position for two": {[]string{a1, at(first, b1), a2, b2}, []string{`repeated: position ` + first}},
		"a row of another shard": {
			[]string{a1, b1, a2, b2,
				`{"position":"01GNSG5PMA000000000000000A","op":"upsert","key":{"id":5},"row":{"id":5,"account":3,` +
					`"n":1,"prev":null}}`},
			[]string{`ghost: key {"id":5}`},
		},
		"a number among ULIDs": {[]string{a1, b1, at("7", a2), b2},
			[]string{`malformed: position "7"`, `causality: position ` + last, `lost: key {"id":3}`}},
		"a letter that no ULID has": {[]string{a1, at("01GNSG5PM8ZZZW00000000000U", b1), a2, b2},
			[]string{`malformed: position "01GNSG5PM8ZZZW00000000000U"`, `lost: key {"id":2}`}},
		"a ULID of more than 128 bits": {[]string{at("81GNSG5PM8ZZZVZZZZZZZZZZZZ", a1), b1, a2, b2},
			[]string{`malformed: position "8`, `causality`, `lost: key {"id":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			v := Check(read(t, strings.Join(c.log, "\n")), rows, rules)
			if len(v.Faults) != len(c.want) {
				t.Fatalf("faults:\n%s\nwant %q", strings.Join(v.Faults, "\n"), c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(v.Faults[i], want) {
					t.Errorf("fault %q, want %q", v.Faults[i], want)
				}
			}
		})
	}
}

// TestCheckerSharesNoCodeWithRowfeed: the checker shares no code with rowfeed.
func TestCheckerSharesNoCodeWithRowfeed(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", "..").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var path string
		var standard bool
		if _, err := fmt.Sscan(line, &path, &standard); err != nil {
			t.Fatal(err)
		}
		if !standard && !strings.HasPrefix(path, "github.com/rowfeed/rowfeed/internal/test/checker") {
			t.Errorf("the checker depends on %s", path)
		}
	}
}
