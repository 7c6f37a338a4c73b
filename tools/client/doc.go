// The program client uses a Go client that oapi-codegen makes of Postroom's OpenAPI document. A test makes
// that client and runs this program against a server; the client itself, of 70,000 lines, is in no
// repository.
package main
