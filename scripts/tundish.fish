# fish completion for tundish(1), tundish-launch(1) and tundish-admin(1)

# The names of the streams of the pipeline files on the line.
function __tundish_streams
    for word in (commandline -opc)
        if string match -q '*.y*ml' -- $word; and test -r $word
            awk '/^streams:/ { inside = 1; next } /^[^ #]/ { inside = 0 }
                 inside && /^  [^ #]/ { sub(/:.*/, ""); print $1 }' $word
        end
    end
end

# The options of the program on the line, or of its command.
function __tundish_options
    set -l words (commandline -opc)
    set -l program $words[1]
    if test (path basename $program) = tundish; and set -q words[2]
        set program $program $words[2]
    end
    $program --help 2>/dev/null | grep -oE -- '--[a-z-]+' | sort -u
end

function __tundish_is_first
    test (count (commandline -opc)) -eq 1
end

complete -c tundish -n __tundish_is_first -f -a '(tundish help --commands 2>/dev/null)'
complete -c tundish -n '__fish_seen_subcommand_from help' -f -a '(tundish help --list 2>/dev/null)'
for program in tundish tundish-launch tundish-admin
    complete -c $program -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__tundish_options)'
    complete -c $program -n 'string match -q -- --stream (commandline -opc)[-1]' -f -a '(__tundish_streams)'
end
