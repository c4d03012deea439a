package consume

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// pages is a source of endless pages that counts them.
type pages struct{ read, failing int }

func (p *pages) Fetch(_ context.Context, req feedtype.Request) (feedtype.Page, error) {
	if p.read++; p.failing > 0 {
		p.failing--
		return feedtype.Page{}, errors.New("away")
	}
	return feedtype.Page{Entries: make([]feedtype.Entry, req.Limit), Cursor: req.After + "1", More: true}, nil
}

func (p *pages) Info(context.Context) (*feedtype.Info, error) {
	return nil, errors.New("not asked for")
}

func reads(p *pages) *pageReader {
	return &pageReader{assignment: &assignment{c: &Consumer{Source: p}, count: 1, until: context.Background()},
		limit: feedtype.DefaultLimit}
}

// TestOldPageReadAheadIsReadAgain: a page that lay ready for long is read again, and so is one that
// could not be read.
func TestOldPageReadAheadIsReadAgain(t *testing.T) {
	for name, c := range map[string]struct {
		lies    time.Duration
		failing int
		want    int
	}{
		"fresh": {staleAhead - 1, 0, 2}, "stale": {staleAhead, 0, 3}, "failed": {0, 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pages{}
				r := reads(p)
				page, err := r.fetch("1", 0)
				if err != nil {
					t.Fatal(err)
				}
				p.failing = c.failing
				r.readAhead(page)
				synctest.Wait()
				<-time.After(c.lies)
				got, err := r.fetch(page.Cursor, 0)
				if err != nil || got.Cursor != "111" || p.read != c.want || r.next != nil {
					t.Errorf("page to %q, error %v, %d pages read, want %d", got.Cursor, err, p.read, c.want)
				}
			})
		})
	}
}

// TestSlowBatchReadsNothingAhead (M47): where a batch takes longer than a page may lie ready none is read ahead, which
// would be read again.
func TestSlowBatchReadsNothingAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pages{}
		r := reads(p)
		r.c.Limit, r.limit = 10, 10
		const batches = 20
		for after := range batches {
			page, err := r.fetch(feedtype.Cursor(fmt.Sprint(after)), 0)
			if err != nil {
				t.Fatal(err)
			}
			r.readAhead(page)
			begun := time.Now()
			<-time.After(staleAhead)
			r.learn(page, time.Since(begun), nil)
		}
		if r.drop(); p.read != batches+1 { // the first one could not know
			t.Errorf("%d pages were read for %d batches", p.read, batches)
		}
		page, _ := r.fetch("20", 0)
		r.learn(page, staleAhead-1, nil)
		if r.readAhead(page); r.next == nil {
			t.Error("none is read ahead where batches are quick again")
		}
		r.drop()
	})
}

// TestBatchSizeFollowsDuration: without a Limit batches grow while they are quick and more waits, shrink
// when one was slow, and begin anew after a failure.
func TestBatchSizeFollowsDuration(t *testing.T) {
	r := reads(&pages{})
	full, last := feedtype.Page{More: true}, feedtype.Page{}
	for i, step := range []struct {
		page feedtype.Page
		took time.Duration
		err  error
		want int
	}{
		{full, 0, nil, 200},
		{full, quickBatch, nil, 200},
		{last, 0, nil, 200},
		{full, 0, nil, 400},
		{full, slowBatch + 1, nil, 200},
		{full, slowBatch + 1, nil, 100},
		{full, slowBatch + 1, nil, 100},
		{full, 0, nil, 200}, {full, 0, nil, 400}, {full, 0, nil, 800}, {full, 0, nil, 1600}, {full, 0, nil, 3200},
		{full, 0, nil, 5000}, {full, 0, nil, 5000},
		{full, 0, errors.New("failed"), 100},
	} {
		if r.learn(step.page, step.took, step.err); r.limit != step.want {
			t.Errorf("after step %d %d entries are asked for, want %d", i, r.limit, step.want)
		}
	}
	r.c.Limit, r.limit = 7, 7
	if r.learn(full, 0, nil); r.limit != 7 {
		t.Errorf("%d entries are asked for where 7 are the limit", r.limit)
	}
}
