/* Alarms close in time on objects that hang together are one incident; its cause is the object others need. */
var request = JSON.parse(decodeURIComponent(INPUT));
var alarms = _.sortBy(request.alarms, "at");
var bursts = [];
_.each(alarms, function (alarm) {
  var burst = _.last(bursts);
  if (burst && alarm.at - _.last(burst).at <= request.seconds) burst.push(alarm);
  else bursts.push([alarm]);
});

function neededBy(id) {
  var graph = odb.mql("MATCH (:/matrix/incident/)-[:feeds]->(:/matrix/incident/)").data[0].graph;
  return _.filter(graph.Edges, function (edge) {
    return edge.source === id;
  }).length;
}

var incidents = [];
_.each(bursts, function (burst) {
  var ids = _.uniq(_.pluck(burst, "id"));
  _.each(graphalg.connectedGraphs(ids, 2), function (group) {
    var members = _.intersection(group, ids);
    var cause = _.max(members, neededBy);
    incidents.push({ cause: cause, alarms: members.length, at: _.min(_.pluck(burst, "at")) });
  });
});
OUTPUT = _.sortBy(incidents, function (incident) {
  return incident.at + incident.cause;
});
