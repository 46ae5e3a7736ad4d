/** Scripts by which shells complete `odp`. Each asks `odp __complete` for what may come next. */
export const SHELL_SCRIPTS: Readonly<Record<string, string>> = {
  bash: `# Completion of odp for bash. Use: source <(odp completion bash)
_odp() {
  local words cur before word
  local line="\${COMP_LINE:0:COMP_POINT}"
  read -ra words <<< "$line"
  [[ "$line" == *" " ]] && words+=("")
  cur="\${words[\${#words[@]}-1]}"
  # Bash replaces only what follows the last of these characters.
  before="\${cur%"\${cur##*[:=@]}"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r word _; do
    case "$word" in
      :files) compopt -o filenames; mapfile -t -O "\${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "\${cur#"$before"}") ;;
      :folders) compopt -o filenames; mapfile -t -O "\${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "\${cur#"$before"}") ;;
      *) COMPREPLY+=("\${word#"$before"}") ;;
    esac
  done < <("\${words[0]}" __complete -- "\${words[@]:1}" 2> /dev/null)
}
complete -F _odp odp
`,
  zsh: `#compdef odp
# Completion of odp for zsh. Use: odp completion zsh > ~/.zfunc/_odp, in a folder of $fpath
_odp() {
  local -a found line
  local word summary
  line=("\${(@)words[2,CURRENT]}")
  while IFS=$'\\t' read -r word summary; do
    case $word in
      # A file may stand behind the sign of an option, as in --file=<path>.
      :files) compset -P '--*='; _files; return ;;
      :folders) compset -P '--*='; _files -/; return ;;
      *) found+=("\${word//:/\\\\:}\${summary:+:$summary}") ;;
    esac
  done < <(\${words[1]} __complete -- "\${line[@]}" 2> /dev/null)
  _describe odp found
}
if [ "$funcstack[1]" = "_odp" ]; then _odp "$@"; else compdef _odp odp; fi
`,
  fish: `# Completion of odp for fish. Use: odp completion fish > ~/.config/fish/completions/odp.fish
function __odp_complete
    set -l words (commandline -opc) (commandline -ct)
    # A file may stand behind the sign of an option, as in --file=<path>.
    set -l before (string match -r '^--[^=]+=' -- (commandline -ct))
    set -l path (string replace -r '^--[^=]+=' '' -- (commandline -ct))
    for line in ($words[1] __complete -- $words[2..-1] 2> /dev/null)
        switch $line
            case ':files*'
                printf "$before%s\\n" (__fish_complete_path "$path")
            case ':folders*'
                printf "$before%s\\n" (__fish_complete_directories "$path")
            case '*'
                echo $line
        end
    end
end
complete -c odp -f -a '(__odp_complete)'
`,
};
