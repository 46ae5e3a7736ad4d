/* Hosts that were recorded under several names are one by their hardware address: the one seen last is kept. */
var CLASS = "/matrix/duplicates/host";
var rows = odb.mql("SELECT id, name, mac, seen, note FROM " + CLASS + " LIMIT -1").data;

function normal(mac) {
  return String(mac || "")
    .toLowerCase()
    .replace(/[^0-9a-f]/g, "");
}

var groups = _.groupBy(rows, function (row) {
  return normal(row.mac);
});
var merged = [];

for (var mac in groups) {
  if (mac === "" || groups[mac].length < 2) continue;
  var sorted = groups[mac].slice().sort(function (one, other) {
    return Number(other.seen) - Number(one.seen);
  });
  var kept = sorted[0];
  var notes = _.compact(_.pluck(sorted, "note"));
  var names = [];
  _.each(sorted.slice(1), function (row) {
    names.push(row.name);
    odb.mql("DELETE FROM " + CLASS + " WHERE name = ?", row.name);
  });
  odb.mql("UPDATE " + CLASS + " SET note = ?, mac = ? WHERE name = ?", notes.join("; "), mac, kept.name);
  merged.push({ kept: kept.name, removed: names.sort() });
}

merged = _.sortBy(merged, "kept");
if (merged.length === 0) log.warn("nothing to merge");
OUTPUT = merged;
