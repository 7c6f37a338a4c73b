//go:build smoke

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	_ "github.com/oapi-codegen/runtime" // which the generated client uses
)

var client *ClientWithResponses

func main() {
	auth := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
		return nil
	}
	var err error
	if client, err = NewClientWithResponses(os.Getenv("URL"), WithRequestEditorFn(auth)); err == nil {
		err = smoke(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

// smoke submits, lists, gets, pauses, resumes and cancels.
func smoke(ctx context.Context) error {
	var to SubmitRequest_To
	if err := to.FromSubmitRequestTo0([]Address{{Address: "ann@example.net"}}); err != nil {
		return err
	}
	subject, text, later, yes := "Hello", "Hello Ann", time.Now().Add(time.Hour), true
	sent, err := client.SubmitWithResponse(ctx, nil, SubmitRequest{To: &to, Subject: &subject, Text: &text,
		SendAt: &later})
	if err != nil || sent.JSON200 == nil || sent.JSON200.QueueId == nil {
		return fmt.Errorf("submit: %w, %s", err, sent.Body)
	}
	id := *sent.JSON200.QueueId
	list, err := client.ListOutboxWithResponse(ctx, &ListOutboxParams{Search: &subject})
	if err != nil || list.JSON200 == nil || len(list.JSON200.Messages) != 1 ||
		list.JSON200.Messages[0].QueueId != id {
		return fmt.Errorf("list: %w, %s", err, list.Body)
	}
	message, err := client.GetMessageWithResponse(ctx, id)
	if err != nil || message.JSON200 == nil || message.JSON200.Subject != subject {
		return fmt.Errorf("get: %w, %s", err, message.Body)
	}
	for _, paused := range []bool{yes, !yes} {
		queue, err := client.PutQueueWithResponse(ctx, "bulk", QueuePatch{Paused: &paused})
		if err != nil || queue.JSON200 == nil {
			return fmt.Errorf("pause or resume: %w, %s", err, queue.Body)
		}
	}
	gone, err := client.CancelMessageWithResponse(ctx, id)
	if err != nil || gone.JSON200 == nil || !gone.JSON200.Deleted {
		return fmt.Errorf("cancel: %w, %s", err, gone.Body)
	}
	missing, err := client.GetMessageWithResponse(ctx, id)
	if err != nil || missing.JSON404 == nil {
		return errors.Join(err, fmt.Errorf("a cancelled message: %s", missing.Body))
	}
	return nil
}
