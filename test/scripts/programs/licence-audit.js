/* Counts installations of each product against what was bought, by classes of edition. */
var installed = odb.mql(
  "SELECT product, edition, count(*) AS n FROM /matrix/licence/installed GROUP BY product, edition LIMIT -1",
).data;
var bought = odb.mql("SELECT product, edition, seats FROM /matrix/licence/bought LIMIT -1").data;

function key(row) {
  return row.product + "/" + (row.edition || "standard");
}

var seats = {};
var used = {};
_.each(bought, function (row) {
  seats[key(row)] = (seats[key(row)] || 0) + row.seats;
});
_.each(installed, function (row) {
  used[key(row)] = (used[key(row)] || 0) + Number(row.n);
});

var report = _.chain(_.union(_.keys(seats), _.keys(used)))
  .map(function (name) {
    var have = seats[name] || 0;
    var need = used[name] || 0;
    return { name: name, have: have, need: need, state: need > have ? "short" : need < have ? "spare" : "even" };
  })
  .sortBy("name")
  .value();

var short = _.where(report, { state: "short" });
if (short.length) log.warn("licences are short:", _.pluck(short, "name").join(", "));
webcontext.writeOperLog("licences", "audited", 1);
OUTPUT = report;
