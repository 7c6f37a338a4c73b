package alerts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func TestDecide(t *testing.T) {
	t.Parallel()
	wrong := &finding{alert: mailFails, wrong: true, value: 120, threshold: 100, text: "120 failed"}
	fine := &finding{alert: mailFails, value: 20, threshold: 100, text: "20 failed"}
	standing := func(edit func(*state)) *state {
		s := wrong.state(start, start)
		edit(&s)
		return &s
	}
	const quiet = time.Minute
	for name, row := range map[string]struct {
		after time.Duration // since start
		stood *state
		found *finding
		want  decision
	}{
		"all is well":  {0, nil, fine, decision{over: true}},
		"nobody knows": {0, nil, nil, decision{}},
		"it begins":    {0, nil, wrong, decision{do: raise, next: wrong.state(start, start)}},
		"it goes on":   {time.Second, standing(func(*state) {}), wrong, decision{}},
		"it goes on for long": {time.Minute, standing(func(*state) {}), wrong,
			decision{do: note, next: wrong.state(start, start.Add(time.Minute))}},
		"it is better just now": {time.Second, standing(func(*state) {}), fine,
			decision{do: note, next: *standing(func(s *state) {
				s.Judged, s.Clear = start.Add(time.Second),
					start.Add(time.Second)
			})}},
		"better for a while": {59 * time.Second, standing(func(s *state) { s.Clear = start }), fine, decision{}},
		"worse again": {30 * time.Second, standing(func(s *state) { s.Clear = start }), wrong,
			decision{do: note, next: wrong.state(start, start.Add(30*time.Second))}},
		"better for good": {time.Minute, standing(func(s *state) { s.Clear = start }), fine,
			decision{do: resolve, next: *standing(func(s *state) {
				s.Judged, s.Clear, s.Value, s.Text = start.Add(time.Minute), start, 20, "Over. It was: 120 failed"
			})}},
		"nobody knows for a while": {staleAfter - 1, standing(func(*state) {}), nil, decision{}},
		"nobody knows any more": {staleAfter, standing(func(*state) {}), nil,
			decision{do: resolve, next: *standing(func(s *state) {
				s.Text = "Nobody watches for this any more, or it can't be measured. Last seen: 120 failed"
			})}},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(start.Add(row.after), row.stood, row.found, quiet)
			if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
