# ROS 2 Jazzy with this package built in a workspace. Build: docker build -t inertid_ros .
# The dependencies are those of package.xml, cvxpy by pip; pip adds what only the simulator needs.
FROM ros:jazzy

SHELL ["/bin/bash", "-c"]
ENV DEBIAN_FRONTEND=noninteractive OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PIP_BREAK_SYSTEM_PACKAGES=1

WORKDIR /ros2_ws
COPY package.xml src/inertid_ros/package.xml
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-pip \
 && rosdep update --rosdistro jazzy \
 && rosdep install --from-paths src --ignore-src -y --rosdistro jazzy \
 && rm -rf /var/lib/apt/lists/*

# The simulator and its robots: simulate.launch.py, stand.launch.py.
RUN pip install --no-cache-dir "mujoco>=3.2" "example-robot-data>=4"

COPY . src/inertid_ros
RUN source /opt/ros/jazzy/setup.bash && colcon build --packages-select inertid_ros --cmake-args -DBUILD_TESTING=OFF

RUN printf '#!/bin/bash\nset -e\nsource /ros2_ws/install/setup.bash\nexport PATH="/ros2_ws/install/inertid_ros/lib/inertid_ros:$PATH"\nexec "$@"\n' \
      > /entrypoint.sh && chmod +x /entrypoint.sh
ENTRYPOINT ["/entrypoint.sh"]
CMD ["bash"]
