package feedtype

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func samplePage(n int) Page {
	page := Page{Cursor: "99", More: true, Key: entryInfo.Key, Columns: entryInfo.Columns}
	for i := range n {
		e := sampleEntry()
		if e.Position = fmt.Sprint(i + 1); i%3 == 2 {
			e.Op, e.Row = Delete, Row{}
		}
		page.Entries = append(page.Entries, e)
	}
	return page
}

// The parts of a page, in any division, are together the page. Only the last part has the cursor.
func TestPartsOfPageAreTogetherThePage(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7} {
		page := samplePage(n)
		var whole struct {
			Feed    string            `json:"feed"`
			Entries []json.RawMessage `json:"entries"`
			Cursor  string            `json:"cursor"`
			More    bool              `json:"more"`
			Base64  []string          `json:"base64"`
		}
		if err := json.Unmarshal(page.AppendJSON(nil, "k\"v"), &whole); err != nil || whole.Feed != "k\"v" ||
			len(whole.Entries) != n ||
			whole.Cursor != "99" || !whole.More || fmt.Sprint(whole.Base64) != "[b]" {
			t.Fatalf("%d entries: %+v, %v", n, whole, err)
		}
		if got := bytes.Count(page.AppendLines(nil), []byte("\n")); got != n+1 {
			t.Fatalf("%d entries in %d lines", n, got)
		}
		for form, c := range map[string]struct {
			want []byte
			part func(dst []byte, i, size int) ([]byte, int)
		}{
			"JSON": {page.AppendJSON(nil, "k\"v"), func(dst []byte, i, size int) ([]byte, int) {
				return page.AppendJSONPart(dst, "k\"v", i, size)
			}},
			"lines": {page.AppendLines(nil), page.AppendLinesPart},
		} {
			for size := range len(c.want) + 2 {
				var all []byte
				for next := 0; next >= 0; {
					var part []byte
					part, next = c.part(nil, next, size)
					if ends := bytes.Contains(part, []byte(`"cursor"`)); ends != (next < 0) ||
						!ends && len(part) < size {
						t.Fatalf("%s, size %d: part %s, next %d", form, size, part, next)
					}
					all = append(all, part...)
				}
				if !bytes.Equal(all, c.want) {
					t.Fatalf("%s, size %d:\n%s\n%s", form, size, all, c.want)
				}
			}
		}
	}
}

// Encoding a row allocates only the bytes of its JSON.
func TestEncodingRowAllocatesOnlyItsJSON(t *testing.T) {
	page := samplePage(300)
	dst := page.AppendJSON(nil, "kv")
	allocations := func(n int) float64 {
		part := page
		part.Entries = page.Entries[:n]
		return testing.AllocsPerRun(100, func() { dst = part.AppendJSON(dst[:0], "kv") })
	}
	if few, many := allocations(3), allocations(300); many != few {
		t.Errorf("%v allocations for 300 entries, %v for 3", many, few)
	}
}

// Every byte, at every offset, parses to itself, and is escaped only if JSON requires it.
func TestAppendStringEscapesOnlyWhatJSONRequires(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for c := range 128 {
				s := strings.Repeat("é", length)[:2*at] + string(rune(c)) + strings.Repeat("z", length-at)
				written := appendString(nil, s)
				var back string
				if err := json.Unmarshal(written, &back); err != nil || back != s {
					t.Fatalf("%q is written %s: %q, %v", s, written, back, err)
				}
				if plain := c >= 0x20 && c != '"' && c != '\\'; plain && string(written) != `"`+s+`"` {
					t.Fatalf("%q is written %s", s, written)
				}
			}
		}
	}
}

// A shared page is encoded once for each form, any other page is not shared at all. If the encoding fails, it fails
// for all readers.
func TestSharedPageIsEncodedOncePerForm(t *testing.T) {
	page := samplePage(1)
	if data, shared := page.Shared("form", func() []byte { t.Error("made"); return nil }); shared || data != nil {
		t.Error("a page of one's own is shared")
	}
	page.made = &made{of: page}
	var made atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		for _, form := range []string{"a", "b"} {
			all.Go(func() {
				data, shared := page.Shared(form, func() []byte { made.Add(1); return []byte(form) })
				if string(data) != form || !shared {
					t.Errorf("%s: %s, %v", form, data, shared)
				}
			})
		}
	}
	if all.Wait(); made.Load() != 2 {
		t.Errorf("made %d times", made.Load())
	}
	for range 2 {
		func() {
			defer func() {
				if v := recover(); v != "broken" {
					t.Errorf("recovered %v", v)
				}
			}()
			data, _ := page.Shared("broken", func() []byte { panic("broken") })
			t.Errorf("answered %s", data)
		}()
	}
}

// The encoded forms of a page are not used for a page that a Source in between has altered, for example by a view for
// one client.
func TestAlteredPageIsNotSentInSharedForm(t *testing.T) {
	page := samplePage(3)
	page.made = &made{of: page}
	same := page
	same.Entries = slices.Clone(page.Entries)
	if _, shared := same.Shared("form", func() []byte { return nil }); !shared {
		t.Error("a copy of the entries is another page")
	}
	for what, alter := range map[string]func(*Page){
		"an entry left out":  func(p *Page) { p.Entries = slices.Delete(p.Entries, 1, 2) },
		"in another order":   func(p *Page) { slices.Reverse(p.Entries) },
		"a row replaced":     func(p *Page) { p.Entries[0].Row = sampleEntry().Row },
		"a row hidden":       func(p *Page) { p.Entries[0].Op = Delete },
		"another cursor":     func(p *Page) { p.Cursor = "100" },
		"said to be the end": func(p *Page) { p.More = false },
		"other columns":      func(p *Page) { p.Columns = p.Columns[:1] },
	} {
		other := page
		other.Entries = slices.Clone(page.Entries)
		alter(&other)
		if _, shared := other.Shared("form", func() []byte { return nil }); shared {
			t.Errorf("%s: what was made of the page before is answered", what)
		}
	}
}
