#!/usr/bin/env bash
# sim_report_browser_test.sh SAMPLE [PICTURES]: opens reports of made-up runs in headless Chromium
# without a network. Every chart is drawn, the console stays silent, nothing is asked from outside,
# and no text of a scenario becomes markup. Screenshots go to the folder PICTURES if it is given.
. "$(dirname "$0")/../support/command_test.sh"
sample=$leeway
pictures=${2:-$scratch}

if ! command -v chromium >/dev/null; then
  echo "SKIPPED: chromium is not installed (apt-get install chromium)"
  exit 77
fi

# Names of hosts resolve to nothing, and every request goes to a proxy that is not there.
browse() {
  run timeout 100 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
    --user-data-dir="$scratch/profile" --host-resolver-rules="MAP * ~NOTFOUND" \
    --proxy-server=127.0.0.1:9 --disable-background-networking --enable-logging=stderr "$@"
}

# page NAME CHARTS: draws so many charts without a word on the console.
page() {
  browse --dump-dom "file://$scratch/$1.html"
  [ "$code" = 0 ] || fail "chromium ended with $code on $1.html"
  grep -q "<body data-charts=\"$2\">" "$scratch/out" ||
    fail "$1.html did not draw $2 charts: $(grep -o '<body[^>]*>' "$scratch/out")"
  if grep -q ':CONSOLE' "$scratch/err"; then fail "$1.html wrote to the console"; fi
}

# picture NAME SIZE [OPTION ...]
picture() {
  local name=$1 size=$2
  shift 2
  browse --screenshot="$pictures/$name-${size%,*}.png" --window-size="$size" "$@" \
    "file://$scratch/$name.html"
  [ -s "$pictures/$name-${size%,*}.png" ] || fail "no picture of $name.html"
}

run "$sample" "$scratch"
[ "$code" = 0 ] || fail "the sample could not be written"

# What would have been loaded from elsewhere; names of XML namespaces and the licence's link are none.
if grep -nE '<(link|img|iframe|object|embed)|(src|href)="|@import|url\(' "$scratch/sweep.html"; then
  fail "the page refers to something outside of it"
fi

page sweep 3     # as asked for by the scenario
page default 6   # main measures
page single 8    # rounds and links of one cell
page long 8      # more rounds than points
page failed 7

page sweep 3
grep -q '&lt;script&gt;alert(1)&lt;/script&gt;' "$scratch/out" || fail "the scenario is not shown as written"
if grep -q '<script>alert' "$scratch/out"; then fail "a text of the scenario became markup"; fi
page failed 7
grep -q 'reported &lt;4&gt;, delivered 3 &amp; late' "$scratch/out" || fail "the failure is not shown"

picture sweep 1280,2600
picture single 400,5000
mv "$pictures/single-400.png" "$pictures/phone.png"
picture single 1280,2800 --blink-settings=preferredColorScheme=0
echo "all pages drawn"
