package e2e_test

import (
	"bytes"
	"encoding/base64"
	"image/color"
	"image/png"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// dot is an image of one pixel.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// TestOperatorLooksAtWhatAMessageSays in each view. The html is shown with the image of the mail itself, and
// its script does not run.
func TestOperatorLooksAtWhatAMessageSays(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	image, err := base64.StdEncoding.DecodeString(dot)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(time.Hour)
	answer, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{SendAt: &at, Subject: "Your order",
		To: api.Addresses{{Address: "ada@example.net"}}, Text: "Thank you, Ada",
		HTML: `<h1 style="color: #a00">Thank you</h1><img src="cid:dot@x" width="80" height="80">`,
		Attachments: []api.Attachment{
			{Filename: "dot.png", CID: "dot@x", ContentType: "image/png", Content: image},
			{Filename: "invoice.pdf", ContentType: "application/pdf", Content: []byte("%PDF")}}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/messages/" + answer.QueueID
	v := visit(t, a.URL())
	v.open(path)
	v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
	v.click(".login button")
	v.sees("Your order", "Scripts and links don’t work here.")

	v.click(`#content nav a[href$="view=text#content"]`)
	v.sees("Thank you, Ada")
	v.click(`#content nav a[href$="view=headers#content"]`)
	v.sees("Message-Id")
	v.click(`#content nav a[href$="view=attachments#content"]`)
	v.sees("invoice.pdf", "application/pdf")
	v.click(`#content nav a[href$="view=html#content"]`)
	v.click(`#content a[href*="width=phone"]`)
	frame := `document.querySelector("iframe.mail").getBoundingClientRect().width`
	if wide := run(v, chromedp.Evaluate[float64](frame)); wide != 390 {
		t.Errorf("a phone is %v pixels wide", wide)
	}
	for _, theme := range []string{"light", "dark"} {
		v.look(theme, 1300)
		v.open(path + "?view=html")
		v.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("iframe.mail").scrollIntoView()`))
		apptest.Eventually(t, "the frame shows the mail on white, "+theme, func() bool { return v.framed() })
	}
	v.look("light", 1300)
	v.open(path + "/html")
	v.sees("Thank you")
	if run(v, chromedp.Evaluate[float64](`document.images[0].naturalWidth`)) != 1 {
		t.Error("the image of the mail is not shown")
	}
}

// framed reports whether the screen has the heading of the mail, which is red, on the white of its frame.
func (v *visitor) framed() bool {
	v.t.Helper()
	screen, err := png.Decode(bytes.NewReader(run(v, chromedp.CaptureScreenshot())))
	if err != nil {
		v.t.Fatal(err)
	}
	red, white := 0, 0
	for y := range screen.Bounds().Dy() {
		for x := range screen.Bounds().Dx() {
			switch color.RGBAModel.Convert(screen.At(x, y)) {
			case color.RGBA{0xaa, 0, 0, 0xff}:
				red++
			case color.RGBA{0xff, 0xff, 0xff, 0xff}:
				white++
			}
		}
	}
	return red > 100 && white > 100_000
}
