#compdef postroom
# Completion of postroom for zsh: source <(postroom completion zsh), below compinit
_postroom() {
	local line
	local -a found
	while IFS= read -r line; do
		found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
	if (( $#found )); then
		_describe postroom found
	else
		_files
	fi
}
compdef _postroom postroom
