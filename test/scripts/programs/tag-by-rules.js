/* Tags hosts by patterns of their names, adds what is missing and takes nothing away that people tagged by hand. */
var rules = JSON.parse(decodeURIComponent(INPUT));
var CLASS = "/matrix/tagged/host";
var hosts = odb.mql("SELECT name, tags FROM " + CLASS + " LIMIT -1").data;
var changed = [];

function compiled(rule) {
  var source = rule.name
    .replace(/[.+^${}()|\[\]\\]/g, "\\$&")
    .replace(/\*/g, ".*")
    .replace(/\?/g, ".");
  return { expression: new RegExp("^" + source + "$", "i"), tags: rule.tags };
}

var compiledRules = _.map(rules, compiled);
_.each(hosts, function (host) {
  var wanted = _.chain(compiledRules)
    .filter(function (rule) {
      return rule.expression.test(host.name);
    })
    .pluck("tags")
    .flatten()
    .uniq()
    .value();
  var missing = _.difference(wanted, host.tags || []);
  if (missing.length === 0) return;
  var list = _.map(missing, function (tag) {
    return '"' + tag + '"';
  }).join(", ");
  odb.mql("UPDATE " + CLASS + " SET tags = tags + [" + list + "] WHERE name = ?", host.name);
  changed.push(host.name + " +" + missing.sort().join(" +"));
});
OUTPUT = changed.sort();
