/* A change is let through when its risk fits the day, and nothing it touches is frozen; each answer is on record. */
var request = JSON.parse(decodeURIComponent(INPUT));
var RISKS = { low: 1, medium: 2, high: 3 };
var LIMITS = [0, 3, 3, 3, 2, 1, 0];
var frozen = _.indexBy(odb.mql("SELECT target, reason FROM /matrix/change/freeze LIMIT -1").data, "target");

function decide(change) {
  var risk = RISKS[change.risk];
  if (!risk) return "refused: risk " + change.risk;
  var weekday = new Date(change.day + "T12:00:00Z").getUTCDay();
  if (risk > LIMITS[weekday])
    return (
      "refused: too risky for " +
      ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"][weekday]
    );
  var stopped = _.filter(change.targets, function (target) {
    return _.has(frozen, target);
  });
  if (stopped.length > 0)
    return (
      "refused: " +
      _.map(stopped, function (target) {
        return target + " (" + frozen[target].reason + ")";
      }).join(", ")
    );
  return "approved";
}

OUTPUT = _.map(request, function (change) {
  var decision = decide(change);
  odb.mql("INSERT INTO /matrix/change/decision (change, decision) VALUES (?, ?)", change.id, decision);
  return change.id + " " + decision;
});
