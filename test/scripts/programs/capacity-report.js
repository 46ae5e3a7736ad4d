/* Disk use by site, the fullest hosts, and when the worst of them is full at the present rate. */
var request = JSON.parse(decodeURIComponent(INPUT));
var rows = odb.mql("SELECT name, site, disk, used, daily FROM /matrix/capacity/host WHERE disk > 0 LIMIT -1").data;

function percent(part, whole) {
  return Math.round((1000 * part) / whole) / 10;
}

function sum(list, field) {
  return _.reduce(
    list,
    function (total, row) {
      return total + row[field];
    },
    0,
  );
}

var sites = _.chain(rows)
  .groupBy("site")
  .map(function (hosts, site) {
    return { site: site, hosts: hosts.length, percent: percent(sum(hosts, "used"), sum(hosts, "disk")) };
  })
  .sortBy("site")
  .value();

var full = _.filter(rows, function (row) {
  return percent(row.used, row.disk) >= request.warnAt;
});
full = _.sortBy(full, function (row) {
  return -percent(row.used, row.disk);
});

var warnings = _.map(full, function (row) {
  var left = row.disk - row.used;
  var days = row.daily > 0 ? Math.floor(left / row.daily) : null;
  return row.name + ": " + percent(row.used, row.disk) + "%" + (days === null ? "" : ", full in " + days + " days");
});

if (warnings.length > 0) message.send("capacity", "operations", "disks", warnings.join("\n"));
odb.mql("INSERT INTO /matrix/capacity/report name = ?, body = ?", request.name, JSON.stringify(sites));
OUTPUT = { sites: sites, warnings: warnings };
