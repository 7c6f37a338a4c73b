package api

// Set sets a field to what a patch has for it. Nil: the patch leaves the field as it is.
func Set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
