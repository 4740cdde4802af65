//! The graph of all states of a model and the steps between them; finds states in which a client
//! may stay for ever.

use std::collections::HashMap;

use stateright::Model;

/// All states of a small model.
pub(crate) struct Graph<L> {
    /// The steps out of each state: the action, and the next state.
    steps: Vec<Vec<(L, usize)>>,
    /// Whether every client is done in the state.
    done: Vec<bool>,
}

impl<L: Copy + PartialEq> Graph<L> {
    /// Explores `model` to its end.
    pub(crate) fn of<M>(model: &M, is_done: impl Fn(&M::State) -> bool) -> Self
    where
        M: Model<Action = L>,
        M::State: Clone + Eq + std::hash::Hash,
    {
        let mut numbers = HashMap::new();
        let mut states = Vec::new();
        let mut number = |state: M::State, states: &mut Vec<M::State>| {
            // Most states are known: only a new one is cloned.
            numbers.get(&state).copied().unwrap_or_else(|| {
                states.push(state.clone());
                numbers.insert(state, states.len() - 1);
                states.len() - 1
            })
        };
        for state in model.init_states() {
            number(state, &mut states);
        }
        let (mut steps, mut actions) = (Vec::new(), Vec::new());
        while let Some(state) = states.get(steps.len()).cloned() {
            model.actions(&state, &mut actions);
            let follow =
                |action: L| Some((action, number(model.next_state(&state, action)?, &mut states)));
            steps.push(actions.drain(..).filter_map(follow).collect());
        }
        let done = states.iter().map(is_done).collect();
        Self { steps, done }
    }

    pub(crate) const fn count(&self) -> usize {
        self.steps.len()
    }

    /// Counts the states from which no state with all clients done can be reached.
    pub(crate) fn count_stuck(&self) -> usize {
        let mut back = vec![Vec::new(); self.count()];
        for (from, steps) in self.steps.iter().enumerate() {
            for (_, to) in steps {
                back[*to].push(from);
            }
        }
        let mut reaches = self.done.clone();
        let mut queue: Vec<usize> = (0..self.count()).filter(|state| self.done[*state]).collect();
        while let Some(state) = queue.pop() {
            for before in &back[state] {
                if !std::mem::replace(&mut reaches[*before], true) {
                    queue.push(*before);
                }
            }
        }
        reaches.into_iter().filter(|reaches| !reaches).count()
    }

    /// Returns the size of the smallest set of states in which a fair scheduler may stay for ever,
    /// although it eventually takes every action that stays possible; `None` without such a set.
    pub(crate) fn fair_cycle(&self) -> Option<usize> {
        let component = self.strongly_connected();
        let mut components: HashMap<usize, Vec<usize>> = HashMap::new();
        for (state, component) in component.iter().enumerate() {
            components.entry(*component).or_default().push(state);
        }
        let inside = |states: &[usize]| {
            let steps = states.iter().flat_map(|state| &self.steps[*state]);
            steps
                .filter(|(_, to)| component[*to] == component[states[0]])
                .map(|(action, _)| *action)
                .collect()
        };
        let fair = components.values().filter(|states| {
            let taken: Vec<L> = inside(states);
            let always = self.steps[states[0]].iter().map(|(action, _)| *action).filter(|action| {
                let can =
                    |state: &usize| self.steps[*state].iter().any(|(other, _)| other == action);
                states.iter().all(can)
            });
            !taken.is_empty() && always.into_iter().all(|action| taken.contains(&action))
        });
        fair.map(Vec::len).min()
    }

    /// Returns the number of the strongly connected component of each state, by Tarjan's algorithm.
    fn strongly_connected(&self) -> Vec<usize> {
        const NONE: usize = usize::MAX;
        let count = self.count();
        let (mut index, mut low, mut component) =
            (vec![NONE; count], vec![0; count], vec![NONE; count]);
        let (mut next, mut components, mut stack) = (0, 0, Vec::new());
        for root in 0..count {
            let mut calls = if index[root] == NONE { vec![(root, 0)] } else { Vec::new() };
            while let Some((state, step)) = calls.pop() {
                if step == 0 {
                    (index[state], low[state]) = (next, next);
                    next += 1;
                    stack.push(state);
                } else {
                    let before = self.steps[state][step - 1].1;
                    if component[before] == NONE {
                        low[state] = low[state].min(low[before]);
                    }
                }
                if let Some((_, to)) = self.steps[state].get(step) {
                    calls.push((state, step + 1));
                    if index[*to] == NONE {
                        calls.push((*to, 0));
                    } else if component[*to] == NONE {
                        low[state] = low[state].min(index[*to]);
                    }
                } else if low[state] == index[state] {
                    while let Some(member) = stack.pop() {
                        component[member] = components;
                        if member == state {
                            break;
                        }
                    }
                    components += 1;
                }
            }
        }
        component
    }
}
