package server

import (
	_ "embed" // the page and its script
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/swaggest/swgui/v5emb"
)

// The page of the API's documentation, and the script that starts Swagger UI in it. They are separate files
// because docsPolicy allows no inline script.
var (
	//go:embed docs.html
	docsHTML []byte
	//go:embed docs.js
	docsJS []byte
)

// docsPolicy allows the page files of this server only. Swagger UI sets styles by script.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// swagger serves the embedded files of Swagger UI.
var swagger = v5emb.New("Postroom", "/openapi.json", "/docs/")

func (i instanceRoutes) docsPage(c echo.Context) error {
	c.Response().Header().Set("Content-Security-Policy", docsPolicy)
	return c.HTMLBlob(http.StatusOK, docsHTML)
}

func (i instanceRoutes) docsFile(c echo.Context) error {
	name := strings.TrimPrefix(c.Request().URL.Path, "/docs/")
	switch name {
	case "":
		return c.Redirect(http.StatusMovedPermanently, "/docs")
	case "docs.js":
		return c.Blob(http.StatusOK, "text/javascript; charset=utf-8", docsJS)
	case "swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png":
		c.Response().Header().Set(echo.HeaderCacheControl, "max-age=3600")
		swagger.ServeHTTP(c.Response(), c.Request())
		return nil
	}
	return echo.ErrNotFound
}
