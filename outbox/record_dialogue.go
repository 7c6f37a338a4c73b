package outbox

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// dialogues are excerpts of SMTP dialogues, by the number of their attempt in the log. They have their own
// key, so that lists and searches needn't read them and attempts needn't rewrite earlier ones. They name
// recipients and quote relays, so they are sealed if contents are.
type dialogues map[int][]api.DialogueLine

// keep adds the dialogue of an attempt, if there is one. again: the attempt replaces another one of its
// number in the log, whose dialogue does not stay.
func (d dialogues) keep(number int, said []smtpsend.DialogueLine, again bool) {
	if len(said) == 0 && !again {
		return
	}
	lines := make([]api.DialogueLine, len(said))
	for i, l := range said {
		lines[i] = api.DialogueLine{At: l.At.Milliseconds(), From: l.From, Text: l.Text}
	}
	d[number] = lines
}

// packDialogues packs the dialogues of one attempt, which may have asked several relays.
func packDialogues(s *store, id string, said dialogues) ([]byte, error) {
	packed, err := s.jsons.pack(id, said)
	return s.codec.seal([]byte(packed), dialogueName(id)), err
}

// rawDialogues opens packed dialogues. It spoils packed.
func rawDialogues(s *store, id string, packed []byte) ([]byte, error) {
	packed, err := s.codec.opened(packed, dialogueName(id))
	if err != nil {
		return nil, err
	}
	return s.jsons.raw(packed)
}

// loggedAttempts returns the log of a message with the dialogues that are kept. One that does not open says
// so.
func loggedAttempts(ctx context.Context, s *store, r row) ([]api.Attempt, error) {
	if !slices.ContainsFunc(r.status.Log, func(a api.Attempt) bool { return a.Error != "" }) {
		return r.status.Log, nil
	}
	kept, err := s.DB.Client().HGetAll(ctx, s.keys.dialogues(r.partition, r.id)).Result()
	if err != nil || len(kept) == 0 {
		return r.status.Log, redisError(err, "read the dialogues of message "+r.id)
	}
	log := slices.Clone(r.status.Log)
	for number := 1; number <= len(log); number++ { // a later attempt may replace one of the same number
		packed, has := kept[strconv.Itoa(number)]
		if !has {
			continue
		}
		for of, lines := range openDialogues(s, r.id, number, packed) {
			if of > 0 && of <= len(log) {
				log[of-1].Dialogue = lines
			}
		}
	}
	return log, nil
}

func openDialogues(s *store, id string, number int, packed string) dialogues {
	raw, err := rawDialogues(s, id, []byte(packed))
	var said dialogues
	if err == nil {
		err = json.Unmarshal(raw, &said)
	}
	if err != nil {
		s.log.Warn("dialogue not read", "message_id", id, "attempt", number, "error", err)
		return dialogues{number: {{From: smtpsend.FromNote, Text: "The dialogue can't be read; the log says why."}}}
	}
	return said
}
