package feedtype

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestShardsOfKeysMatchVectors (M18, H24): keys in the JSON of entries have the shards of ../testdata/shards.json,
// which another implementation of the rule has written.
func TestShardsOfKeysMatchVectors(t *testing.T) {
	data, err := os.ReadFile("../testdata/shards.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name   string
		Kinds  []Kind
		Key    json.RawMessage
		Text   string
		CRC32  uint32
		Shards map[int]int
	}
	if err := json.Unmarshal(data, &vectors); err != nil || len(vectors) < 35 {
		t.Fatal(len(vectors), err)
	}
	for _, v := range vectors {
		var key Row
		members := json.NewDecoder(bytes.NewReader(v.Key))
		_, _ = members.Token()
		for members.More() {
			name, err := members.Token()
			if err != nil {
				t.Fatal(err)
			}
			var value json.RawMessage
			if err := members.Decode(&value); err != nil {
				t.Fatal(err)
			}
			kind := v.Kinds[len(key.columns)]
			decoded, err := ParseValue(kind, value)
			if doc, ok := decoded.(json.RawMessage); ok && err == nil {
				decoded, err = fromDatabase(kind, string(doc)) // without the blanks of the file
			}
			if err != nil {
				t.Fatalf("%s: %v", v.Name, err)
			}
			key.columns = append(key.columns, Column{Name: fmt.Sprint(name), Kind: kind})
			key.values = append(key.values, decoded)
		}
		if got := string(key.canonical()); got != v.Text || crc32.ChecksumIEEE([]byte(got)) != v.CRC32 {
			t.Errorf("%s: text %q, want %q", v.Name, got, v.Text)
		}
		for n, want := range v.Shards {
			if got := ShardOf(key, n); got != want {
				t.Errorf("%s: shard %d of %d, want %d", v.Name, got, n, want)
			}
		}
	}
}

// TestDocumentedPythonComputesSameShards (M18): the function in docs/SHARDS.md returns the same shards.
func TestDocumentedPythonComputesSameShards(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	page, err := os.ReadFile("../docs/SHARDS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, function, _ := strings.Cut(string(page), "```python\n")
	function, _, found := strings.Cut(function, "```")
	data, err := os.ReadFile("../testdata/shards.json")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	var vectors []struct {
		Key    json.RawMessage
		Shards map[int]int
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	var asked, want bytes.Buffer
	for _, v := range vectors {
		for n, shard := range v.Shards {
			fmt.Fprintf(&asked, "%d ", n)
			if err := json.Compact(&asked, v.Key); err != nil { // without the blanks of the file
				t.Fatal(err)
			}
			asked.WriteByte('\n')
			fmt.Fprintln(&want, shard)
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "-X", "utf8", "-c", function+`
import sys
for line in sys.stdin:
    n, key = line.rstrip("\n").split(" ", 1)
    print(shard(key, int(n)))`)
	cmd.Stdin = &asked
	questions := strings.Split(asked.String(), "\n")
	got, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	answers := strings.Split(string(got), "\n")
	for i, shard := range strings.Split(want.String(), "\n") {
		if i >= len(answers) || answers[i] != shard {
			t.Errorf("data shards and key %s: want shard %s, of the answers\n%s", questions[i], shard, got)
		}
	}
}

// TestEachShardIsInOnePart (M21, M25): for every number of parts, each data shard is in exactly one of them. An invalid
// part is refused with the name of the parameter.
func TestEachShardIsInOnePart(t *testing.T) {
	for _, shards := range []int{1, 2, 7, 512, 1000, 1024, 4096, MaxDataShards} {
		for _, n := range []int{1, 2, 3, 4, 5, 7, 31, 32, 33, 1000, shards - 1, shards, shards + 1, MaxDataShards} {
			if n < 1 {
				continue
			}
			if n > shards {
				_, _, err := Part(0, n).Range(shards)
				var e *Error
				if !errors.As(err, &e) || e.Code != InvalidRequest || e.Param != "shard_count" {
					t.Errorf("%d parts of %d shards: %v", n, shards, err)
				}
				continue
			}
			end := 0
			for i := range n {
				from, to, err := Part(i, n).Range(shards)
				if err != nil || from != end || to < from {
					t.Fatalf("part %d of %d of %d shards is %d to %d (%v), behind %d", i, n, shards, from, to, err, end)
				}
				if size := to - from; size < shards/n || size > (shards+n-1)/n {
					t.Fatalf("part %d of %d of %d shards has %d", i, n, shards, size)
				}
				end = to
			}
			if end != shards {
				t.Fatalf("%d parts of %d shards end at %d", n, shards, end)
			}
		}
	}
	for _, c := range []struct {
		shards Shards
		param  string
	}{
		{One(-1), "shard"}, {One(8), "shard"}, {Part(0, -1), "shard_count"}, {Part(0, MaxDataShards+1), "shard_count"},
		{Part(1, 0), "shard_count"}, {Part(-1, 4), "shard"}, {Part(4, 4), "shard"}, {Part(5, 1), "shard"},
	} {
		_, _, err := c.shards.Range(8)
		var e *Error
		if !errors.As(err, &e) || e.Code != InvalidRequest || e.Param != c.param {
			t.Errorf("%s: %v", c.shards, err)
		}
	}
	if !Part(0, 1).All() || !(Shards{}).All() || One(0).All() || Part(0, 2).All() {
		t.Error("the whole feed is the zero value or part 0 of 1, and nothing else")
	}
	for v, want := range map[any]int{
		int64(-1): 6, int64(-7): 0, int64(-8): 6, int64(7): 0, int64(8): 1, uint64(1 << 63): int(uint64(1<<63) % 7),
	} {
		if got, ok := moduloOf(v, 7); !ok || got != want {
			t.Errorf("%v modulo 7: %d", v, got)
		}
	}
	if _, ok := moduloOf("7", 7); ok {
		t.Error("text is no integer")
	}
}
