/* Which hosts are in a window of maintenance at a time; windows that overlap on one host are refused. */
var request = JSON.parse(decodeURIComponent(INPUT));
var DAY = 86400000;

function at(text) {
  var parts = /^(\d+)-(\d+)-(\d+) (\d+):(\d+)$/.exec(text);
  if (!parts) throw new Error("not a time: " + text);
  return Date.UTC(+parts[1], parts[2] - 1, +parts[3], +parts[4], +parts[5]);
}

var windows = _.map(request.windows, function (window) {
  var from = at(window.from);
  var until = window.until ? at(window.until) : from + DAY;
  if (until <= from) throw new Error(window.host + ": ends before it begins");
  return { host: window.host, from: from, until: until };
});

var refused = [];
_.each(_.groupBy(windows, "host"), function (list, host) {
  list.sort(function (one, other) {
    return one.from - other.from;
  });
  for (var i = 1; i < list.length; i++) {
    if (list[i].from < list[i - 1].until) {
      refused.push(host);
      return;
    }
  }
  appcontext.rawset("window " + host, JSON.stringify(list), 3600);
});

var now = at(request.at);
var quiet = _.filter(_.uniq(_.pluck(windows, "host")), function (host) {
  var stored = appcontext.rawget("window " + host);
  return (
    !!stored &&
    _.any(JSON.parse(stored), function (window) {
      return window.from <= now && now < window.until;
    })
  );
});
OUTPUT = { quiet: quiet.sort(), refused: refused.sort() };
