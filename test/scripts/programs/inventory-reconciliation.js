/* Compares what a scan found with what is on record: adds, changes, and marks what is gone. */
var scan = JSON.parse(decodeURIComponent(INPUT));
var HOSTS = "/matrix/inventory/host";
var known = {};
var summary = { added: [], changed: [], gone: [], same: 0 };

function byName(rows) {
  var index = {};
  _.each(rows, function (row) {
    index[row.name] = row;
  });
  return index;
}

function differs(row, found) {
  return _.any(["os", "cpus", "site"], function (field) {
    return String(row[field]) !== String(found[field]);
  });
}

known = byName(odb.mql("SELECT name, os, cpus, site, state FROM " + HOSTS + " LIMIT -1").data);

_.each(scan, function (found) {
  var row = known[found.name];
  if (!row) {
    odb.mql(
      "INSERT INTO " + HOSTS + " (name, os, cpus, site, state) VALUES (?, ?, ?, ?, 'active')",
      found.name,
      found.os,
      found.cpus,
      found.site,
    );
    summary.added.push(found.name);
  } else if (differs(row, found)) {
    odb.mql(
      "UPDATE " + HOSTS + " SET os = ?, cpus = ?, site = ? WHERE name = ?",
      found.os,
      found.cpus,
      found.site,
      found.name,
    );
    summary.changed.push(found.name);
  } else {
    summary.same += 1;
  }
});

var names = _.pluck(scan, "name");
for (var name in known) {
  if (!known.hasOwnProperty(name)) continue;
  if (_.contains(names, name) || known[name].state === "gone") continue;
  odb.mql("UPDATE " + HOSTS + " SET state = 'gone' WHERE name = ?", name);
  summary.gone.push(name);
}
summary.gone.sort();
log.info("inventory:", summary.added.length, "added,", summary.gone.length, "gone");
OUTPUT = summary;
