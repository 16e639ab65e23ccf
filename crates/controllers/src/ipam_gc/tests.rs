mod model;
mod rules;

use jiff::SignedDuration;
use model::{GRACE, World};

#[test]
fn nothing_in_use_is_ever_released_and_all_else_is_in_the_end() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.step();
        }
        // Everything comes to rest, and the collector hears of it.
        let names: Vec<String> = world.pods.keys().cloned().collect();
        for name in names {
            world.report(&name);
        }
        for _ in 0..40 {
            world.seen_catches_up();
            world.told_of_blocks();
            world.state.all_dirty = true;
            world.collect();
            world.now += GRACE / 2 + SignedDuration::from_secs(1);
        }
        world.told_of_blocks();

        let handles: Vec<&str> = world.pods.values().map(|pod| pod.handle.as_str()).collect();
        let mut held = 0;
        for (net, block) in &world.blocks {
            for (address, attributes) in block.allocations() {
                let handle = attributes.handle_id.as_deref().unwrap_or_default();
                assert!(handles.contains(&handle), "{address} leaked, seed {seed}");
                held += 1;
            }
            let owner = block.owner().expect("none lose their owner here").name;
            assert!(
                world.nodes.contains(&owner),
                "{net} of {owner}, which is gone, seed {seed}"
            );
        }
        assert!(held >= handles.len(), "seed {seed}");
        for node in &world.nodes {
            let blocks = world.state.blocks_of(node);
            let empty = blocks.iter().filter(|net| world.blocks[*net].is_empty());
            assert!(
                empty.count() <= 1,
                "{node} hoards empty blocks, seed {seed}"
            );
        }
        // What a pod has beside the address that it reports stays with it.
        for place in world.state.confirmed.keys() {
            let allocation = world.state.allocation(*place).expect("it is known");
            assert!(handles.contains(&allocation.handle()), "seed {seed}");
        }
    }
}
