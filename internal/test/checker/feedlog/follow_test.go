package feedlog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// script serves its answers one after the other, the last one for all further requests, and calls told with the number
// of each request.
func script(t *testing.T, told func(n int, after string), answers ...string) *httptest.Server {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[min(n, len(answers)-1)]
		n++
		if told != nil {
			q := r.URL.Query()
			told(n, q.Get("shard")+" "+q.Get("after")+" "+q.Get("wait"))
		}
		var status int
		if _, err := fmt.Sscan(answer, &status); err == nil {
			w.WriteHeader(status)
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

const (
	firstPage = `{"entries":[{"position":"1","op":"upsert","key":{"id":1},"row":{"id":1}},{"position":"3",` +
		`"op":"delete","key":{"id":2}}],"cursor":"3@9","more":true}`
	lastPage = `{"entries":[{"position":"9","op":"upsert","key":{"id":3},"row":{"id":3}}],"cursor":"9","more":false}`
	noPage   = `{"entries":[],"cursor":"9","more":false}`
)

// TestFollowReadsToTheHead: cursors are sent as they were received, requests to unavailable servers are repeated, and
// only an empty page that was requested after the end ends Follow.
func TestFollowReadsToTheHead(t *testing.T) {
	finish := make(chan struct{})
	var cursors []string
	s := script(t, func(n int, after string) {
		cursors = append(cursors, after)
		if n == 4 {
			close(finish)
		}
	}, "503 away", firstPage, "500 away", noPage, lastPage, noPage)
	var positions []string
	f := Follower{URL: s.URL + "/?shard=-5", Limit: 2, Wait: time.Second, Patience: time.Minute,
		Got: func(e Entry) error { positions = append(positions, e.Position); return nil }}
	stats, err := f.Follow(t.Context(), finish)
	if err != nil || stats.Pages != 4 || stats.Failures != 2 {
		t.Errorf("%+v, %v", stats, err)
	}
	if got, want := strings.Join(positions, " "), "1 3 9"; got != want {
		t.Errorf("positions %s, want %s", got, want)
	}
	if got, want := strings.Join(cursors, ", "), "-5  1s, -5  1s, -5 3@9 1s, -5 3@9 1s, -5 9 , -5 9 "; got != want {
		t.Errorf("cursors %q, want %q", got, want)
	}
}

// TestFollowRefusesInvalidPages: Follow ends with an error if a page is invalid.
func TestFollowRefusesInvalidPages(t *testing.T) {
	never := make(chan struct{})
	broken := errors.New("the disk is full")
	for name, c := range map[string]struct {
		answer   string
		patience time.Duration
		got      error
		want     string
	}{
		"refused":           {"409 cursor-ahead", time.Minute, nil, "cursor-ahead"},
		"away for too long": {"503 away", 0, nil, "503"},
		"more is missing":   {`{"entries":[],"cursor":""}`, time.Minute, nil, "missing"},
		"no cursor": {strings.Replace(lastPage, `"cursor":"9"`, `"cursor":""`, 1), time.Minute, nil,
			"no cursor"},
		"no JSON":        {"<html>", time.Minute, nil, "invalid character"},
		"cannot be kept": {lastPage, time.Minute, broken, "disk is full"},
	} {
		t.Run(name, func(t *testing.T) {
			s := script(t, nil, c.answer)
			f := Follower{URL: s.URL, Limit: 2, Patience: c.patience, Got: func(Entry) error { return c.got }}
			if _, err := f.Follow(t.Context(), never); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestFollowEndsWhenQuiet: without a signal, Follow ends when no entry arrives.
func TestFollowEndsWhenQuiet(t *testing.T) {
	s := script(t, nil, lastPage, noPage)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := 0
	f := Follower{URL: s.URL, Limit: 2, Patience: time.Minute, Quiet: time.Millisecond,
		Got: func(Entry) error { n++; return nil }}
	if _, err := f.Follow(ctx, nil); err != nil || n != 1 {
		t.Errorf("%d entries, %v", n, err)
	}
}
