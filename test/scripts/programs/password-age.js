/* Accounts whose password is old get a mail by template; who is a service is only listed. */
var request = JSON.parse(decodeURIComponent(INPUT));
var DAY = 24 * 60 * 60 * 1000;
var template = _.template("<%= name %>: <%= days %> days<% if (days > limit * 2) { %>, overdue<% } %>");
var rows = odb.mql("SELECT name, kind, changed FROM /matrix/account/entry LIMIT -1").data;
var result = { mailed: [], listed: [], never: [] };

_.each(_.sortBy(rows, "name"), function (row) {
  if (row.changed === null || row.changed === undefined) {
    result.never.push(row.name);
    return;
  }
  var days = Math.floor((request.now - Number(row.changed)) / DAY);
  if (days <= request.limit) return;
  var text = template({ name: row.name, days: days, limit: request.limit });
  switch (row.kind) {
    case "service":
      result.listed.push(text);
      break;
    case "person":
      message.send("accounts", "accounts-" + row.name, "password", text);
      result.mailed.push(text);
      break;
    default:
      log.warn("kind", row.kind, "of", row.name, "is not known");
  }
});
OUTPUT = result;
