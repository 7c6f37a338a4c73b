package server

import "github.com/postroom/postroom/api"

// listMailBody is the size limit of bodies with a list: two emails of 512 kB, and what JSON adds to them.
const listMailBody = 4 << 20

type listInput struct {
	ListID string `path:"listId" maxLength:"63" doc:"ID of the list"`
}

func (in listInput) id() string { return in.ListID }

type updateListInput struct {
	listInput
	body[api.ListPatch]
}
