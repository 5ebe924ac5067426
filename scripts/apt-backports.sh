#!/bin/sh
# Print the deb822 apt source that adds CODENAME-backports to a Debian machine, derived from the machine's own sources:
# the same URI and Signed-By as its CODENAME main source, so that mirrors and proxies chosen by its owner keep working.
#
#   scripts/apt-backports.sh CODENAME [APT_DIR]        APT_DIR is /etc/apt
#
# Prints nothing when another source serves CODENAME-backports already. Fails (1) when no source is Debian's own.
set -eu

codename=$1
apt_dir=${2:-/etc/apt}
ours=rvvbench-backports.sources

set --
for file in "$apt_dir/sources.list" "$apt_dir"/sources.list.d/*.list "$apt_dir"/sources.list.d/*.sources; do
    if [ -f "$file" ] && [ "${file##*/}" != "$ours" ]; then
        set -- "$@" "$file"
    fi
done
if [ $# -eq 0 ]; then
    echo "apt-backports: no apt sources below $apt_dir" >&2
    exit 1
fi

exec awk -v codename="$codename" '
function has_word(list, word,    words, count, i) {
    count = split(list, words, /[ \t\n]+/)
    for (i = 1; i <= count; i++)
        if (words[i] == word) return 1
    return 0
}

function trim(text) {
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    return text
}

# One enabled binary source: its URIs, the suites and components it serves, and the key that signs it.
function add(uris, suites, components, signed_by) {
    uris = trim(uris)
    sub(/\/$/, "", uris)
    if (!has_word(components, "main")) return
    if (has_word(suites, codename "-backports")) served = 1
    if (has_word(suites, codename "-updates")) has_updates[uris] = 1
    if (has_word(suites, codename)) {
        sources++
        uri_of[sources] = uris
        key_of[sources] = signed_by
    }
}

# A stanza of a .sources file ends: at an empty line, at the end of its file.
function end_of_stanza() {
    if (has_word(field["types"], "deb") && tolower(field["enabled"]) != "no")
        add(field["uris"], field["suites"], field["components"], field["signed-by"])
    split("", field)
    name = ""
}

# "deb [arch=amd64 signed-by=/a/key.gpg] URI SUITE COMPONENT..."
function one_line(line,    options, signed_by, words, count, components, i) {
    sub(/#.*/, "", line)
    line = trim(line)
    if (line !~ /^deb[ \t]/) return
    sub(/^deb[ \t]+/, "", line)
    signed_by = ""
    if (match(line, /^\[[^]]*\]/)) {
        options = substr(line, 2, RLENGTH - 2)
        line = trim(substr(line, RLENGTH + 1))
        if (match(options, /signed-by=[^ \t]+/)) {
            signed_by = substr(options, RSTART + 10, RLENGTH - 10)
            gsub(/,/, " ", signed_by)
        }
    }
    count = split(line, words, /[ \t]+/)
    for (i = 3; i <= count; i++) components = components " " words[i]
    add(words[1], words[2], trim(components), signed_by)
}

FNR == 1 { end_of_stanza(); deb822 = FILENAME ~ /\.sources$/ }
{ sub(/\r$/, "") }
!deb822 { one_line($0); next }
/^#/ { next }
/^[ \t]*$/ { end_of_stanza(); next }
/^[ \t]/ { if (name != "") field[name] = field[name] "\n" $0; next }    # a key can stand in the source itself
{
    colon = index($0, ":")
    name = tolower(substr($0, 1, colon - 1))
    field[name] = trim(substr($0, colon + 1))
}

# Other vendors name their suites after Debian releases too. Debian itself is who serves CODENAME-updates beside
# CODENAME, else who serves it from a path that ends in /debian.
END {
    end_of_stanza()
    if (served) exit 0
    for (i = 1; i <= sources && !chosen; i++) if (uri_of[i] in has_updates) chosen = i
    for (i = 1; i <= sources && !chosen; i++) if (uri_of[i] ~ /\/debian$/) chosen = i
    if (!chosen) {
        print "apt-backports: no source among the apt sources serves Debian " codename " main" > "/dev/stderr"
        exit 1
    }
    print "Types: deb"
    print "URIs: " uri_of[chosen]
    print "Suites: " codename "-backports"
    print "Components: main"
    if (key_of[chosen] != "") print "Signed-By: " key_of[chosen]
}' "$@"
