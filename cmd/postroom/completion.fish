# Completion of postroom for fish: postroom completion fish | source
function __postroom_complete
	set -l typed (commandline -opc)
	set -l found ($typed[1] complete -- $typed[2..-1] (commandline -ct) 2>/dev/null)
	if test (count $found) -gt 0
		printf '%s\n' $found
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c postroom -f -a '(__postroom_complete)'
