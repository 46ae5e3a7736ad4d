/* Open events become one message for each owner, worst first, with repeated ones counted; each is told once. */
var LEVELS = ["fine", "notice", "warning", "error"];
var events = odb.mql(
  "SELECT code, owner, host, text, level FROM /matrix/digest/event WHERE told = false LIMIT -1",
).data;

function repeated(list) {
  var counted = {};
  _.each(list, function (event) {
    var key = event.level + " " + event.text;
    counted[key] = counted[key] || { level: event.level, text: event.text, hosts: [] };
    counted[key].hosts.push(event.host);
  });
  return _.sortBy(_.values(counted), function (entry) {
    return [9 - entry.level, entry.text].join();
  });
}

function line(entry) {
  var hosts = _.uniq(entry.hosts).sort();
  var shown = hosts.slice(0, 2).join(", ");
  if (hosts.length > 2) shown += " and " + (hosts.length - 2) + " more";
  return "[" + LEVELS[entry.level] + "] " + entry.text + " (" + shown + ")";
}

var digests = {};
_.each(_.groupBy(events, "owner"), function (list, owner) {
  digests[owner] = _.map(repeated(list), line);
  message.send("digest", "digest-" + owner, list.length + " events", digests[owner].join("\n"));
  concurrent.run(
    "odb.mql",
    _.map(list, function (event) {
      return ["UPDATE /matrix/digest/event SET told = true WHERE code = ?", event.code];
    }),
  );
});
OUTPUT = digests;
