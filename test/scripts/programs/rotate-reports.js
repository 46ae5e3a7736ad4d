/* Writes the report of the day into a folder of files, keeps the newest few, and makes an index of them. */
var request = JSON.parse(decodeURIComponent(INPUT));
var FOLDER = "/home/reports";

function pad(n, width) {
  var text = String(n);
  while (text.length < width) text = "0" + text;
  return text;
}

_.times(request.days, function (day) {
  var rows = _.map(request.hosts, function (host, at) {
    return [host, pad((day + 1) * (at + 3), 4)].join("\t");
  });
  dfs.write(FOLDER + "/2026-11-" + pad(day + 1, 2) + ".tsv", rows.join("\n") + "\n");
});

var names = _.pluck(dfs.readdir(FOLDER), "name").sort();
var kept = _.last(names, request.keep);
var index = _.map(kept, function (name) {
  var lines = _.compact(dfs.read(FOLDER + "/" + name).split("\n"));
  var sum = _.reduce(
    lines,
    function (total, line) {
      return total + parseInt(line.split("\t")[1], 10);
    },
    0,
  );
  return name + " " + lines.length + " " + sum;
});
dfs.write("/home/reports-index.txt", index.join("\n"));
OUTPUT = { all: names.length, index: dfs.read("/home/reports-index.txt").split("\n") };
